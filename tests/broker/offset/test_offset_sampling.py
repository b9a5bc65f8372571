"""Offsets of groups are sampled by one process, and never by a short-lived one."""

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.offset.offset_sampling import (
    FIRST_AFTER_MS,
    INTERVAL_MS,
    LONG_INTERVAL_MS,
    ProgressSampler,
)
from storage.config import SMALL_STORE
from storage.configs.offset_samples import OffsetSamples
from storage.configs.progress import ProgressFile
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.consumers import eventually

T = 1_700_000_000_000


@pytest.fixture
def broker(tmp_path):
    MessageStore.create(tmp_path / "s", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "s") as broker:
        yield broker


def sampler(broker, *, elected=True):
    root = broker.view.root
    return ProgressSampler(
        ProgressFile(root), OffsetSamples(root), lambda: broker.view, lambda: elected
    )


def progress(broker, offset, group="g"):
    broker.update_consumer_offsets(group, [OffsetCommit("T", 0, offset)])


@pytest.mark.feature(50)
def test_progress_and_ends_are_noted_every_ten_seconds(broker):
    for _ in range(3):
        broker.send(Message("T", b"x"), 0)
    service = sampler(broker)
    assert service.tick(T) == T + FIRST_AFTER_MS
    progress(broker, 1)
    assert service.tick(T + 5_000) == T + 5_000 + INTERVAL_MS
    progress(broker, 2)
    broker.send(Message("T", b"x"), 0)
    service.tick(T + 15_000)
    service.tick(T + 25_000)
    history = OffsetSamples(broker.view.root).read(0)
    assert history.committed("T@g", 0) == [(T + 5_000, 1), (T + 15_000, 2)]
    assert history.ends("T", 0) == [(T + 5_000, 3), (T + 15_000, 4)]


def test_only_the_elected_process_writes(broker):
    progress(broker, 1)
    service = sampler(broker, elected=False)
    for now in (T, T + 5_000, T + 15_000):
        assert service.tick(now) > now
    assert not OffsetSamples(broker.view.root).files()


def test_who_reads_thousands_of_queues_is_looked_at_once_a_minute(broker, monkeypatch):
    monkeypatch.setattr("broker.offset.offset_sampling.MANY_OFFSETS", 1)
    progress(broker, 1)
    progress(broker, 1, "h")
    service = sampler(broker)
    service.tick(T)
    assert service.tick(T) == T + LONG_INTERVAL_MS


def test_a_broker_in_the_foreground_does_so(broker, monkeypatch):
    monkeypatch.setattr("broker.offset.offset_sampling.FIRST_AFTER_MS", 10)
    monkeypatch.setattr("broker.offset.offset_sampling.INTERVAL_MS", 10)
    progress(broker, 1)
    broker.start_services()
    eventually(lambda: OffsetSamples(broker.view.root).read(0).committed("T@g", 0))
