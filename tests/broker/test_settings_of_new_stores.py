"""Settings that a store was made with count for the next opening."""

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE, FlushDiskType, StoreConfig
from storage.store import MessageStore
from tests.support.cli import run

GIVEN = {
    "flush_disk_type": FlushDiskType.SYNC_FLUSH,
    "file_reserved_time_hours": 7,
    "delete_when": "",
    "message_delay_level": "1s 2s",
    "disk_space_clean_forcibly_ratio": 0.5,
    "clean_file_forcibly_enable": True,
}


def test_the_next_opener_has_the_settings_of_the_store(tmp_path):
    MessageStore.create(tmp_path / "s", SMALL_STORE.with_(**GIVEN))
    with MessageStore.open(tmp_path / "s") as store:
        assert {name: getattr(store.config, name) for name in GIVEN} == GIVEN
        assert store.config.mapped_file_size_commit_log == SMALL_STORE.mapped_file_size_commit_log
    with EmbeddedBroker.open(tmp_path / "s", read_only=True) as broker:
        assert broker.view.config.flush_disk_type is FlushDiskType.SYNC_FLUSH


@pytest.mark.parametrize(
    ("name", "value"), [("flushDiskType", "SYNC_FLUSH"), ("fileReservedTime", "7")]
)
def test_they_are_shown_with_their_source(tmp_path, name, value):
    MessageStore.create(tmp_path / "s", SMALL_STORE.with_(**GIVEN))
    (row,) = run("broker", "config", "get", name, "-S", tmp_path / "s", "-o", "json").json()
    assert (row["value"], row["origin"]) == (value, "rmqctl/settings.json")


def test_the_next_opener_has_the_settings_of_the_broker(tmp_path):
    config = BrokerConfig(broker_name="broker-b", auto_create_topic_enable=False)
    create_store(tmp_path / "s", SMALL_STORE.with_(**GIVEN), config)
    with EmbeddedBroker.open(tmp_path / "s") as broker:
        assert broker.config.broker_name == "broker-b"
        assert not broker.config.auto_create_topic_enable
        assert broker.view.config.flush_disk_type is FlushDiskType.SYNC_FLUSH


def test_what_the_opener_says_counts_before_what_was_recorded(tmp_path):
    MessageStore.create(tmp_path / "s", SMALL_STORE.with_(**GIVEN))
    asks = StoreConfig(flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    with MessageStore.open(tmp_path / "s", asks) as store:
        assert store.config.flush_disk_type is FlushDiskType.ASYNC_FLUSH


def test_defaults_are_not_recorded(tmp_path):
    MessageStore.create(tmp_path / "s", SMALL_STORE)
    create_store(tmp_path / "t", SMALL_STORE)
    assert not list(tmp_path.glob("*/rmqctl/settings.json"))
