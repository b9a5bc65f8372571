"""Settings are what a frozen dataclass of keywords is, but for how they are made."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from broker.config import BrokerConfig
from storage.config import SMALL_STORE, FlushDiskType, StoreConfig

KINDS = [StoreConfig, BrokerConfig]


@pytest.mark.parametrize("kind", KINDS)
def test_a_setting_that_is_not_given_is_the_default(kind):
    made = kind()
    assert fields(kind)
    assert {field.name: getattr(made, field.name) for field in fields(kind)} == {
        field.name: field.default for field in fields(kind)
    }


def test_what_is_given_counts_and_the_rest_stays():
    made = StoreConfig(max_index_num=9, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    assert (made.max_index_num, made.flush_disk_type) == (9, FlushDiskType.SYNC_FLUSH)
    assert made.max_hash_slot_num == StoreConfig().max_hash_slot_num
    for other in (replace(SMALL_STORE, max_index_num=9), SMALL_STORE.with_(max_index_num=9)):
        assert other.max_index_num == 9
        assert other.max_hash_slot_num == SMALL_STORE.max_hash_slot_num
    assert SMALL_STORE.max_index_num != 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_no_setting_is_refused(kind):
    for make in (kind, kind().with_, lambda **given: replace(kind(), **given)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'max_idnex_num'"):
            make(max_idnex_num=9)
    with pytest.raises(TypeError):
        kind(9)


def test_values_are_checked_however_they_are_given():
    for make in (StoreConfig, SMALL_STORE.with_, lambda **given: replace(SMALL_STORE, **given)):
        with pytest.raises(ValueError, match="max_index_num"):
            make(max_index_num=1)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_do_not_change(kind):
    made, name = kind(), fields(kind)[0].name
    with pytest.raises(FrozenInstanceError, match=name):
        setattr(made, name, 1)
    with pytest.raises(FrozenInstanceError, match=name):
        delattr(made, name)
    with pytest.raises(FrozenInstanceError):
        made.other = 1
    assert made == kind()


def test_equal_settings_are_equal_whether_given_or_not():
    given = StoreConfig(max_index_num=StoreConfig().max_index_num)
    assert given == StoreConfig()
    assert hash(given) == hash(StoreConfig())
    assert given != StoreConfig(max_index_num=9)
    assert given != BrokerConfig()


def test_settings_are_shown_copied_and_pickled():
    made = BrokerConfig(broker_name="b")
    assert repr(made).startswith("BrokerConfig(broker_cluster_name='DefaultCluster', broker_name=")
    assert "broker_name='b'" in repr(made)
    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made


SWITCHES = [
    (kind, field.name)
    for kind in KINDS
    for field in fields(kind)
    if isinstance(field.default, bool) or field.default is None
]


@pytest.mark.parametrize(("kind", "name"), SWITCHES)
@pytest.mark.parametrize("value", ["false", 0, 1, []])
def test_a_switch_that_is_no_bool_is_refused(kind, name, value):
    with pytest.raises(ValueError, match=f"{name} is .*; it is True or False"):
        kind(**{name: value})
    for right in (True, False):
        assert getattr(kind(**{name: right}), name) is right


@pytest.mark.parametrize("given", [FlushDiskType.SYNC_FLUSH, "SYNC_FLUSH"])
def test_an_enum_is_its_member_or_the_exact_name_of_one(given):
    for make in (StoreConfig, SMALL_STORE.with_):
        assert make(flush_disk_type=given).flush_disk_type is FlushDiskType.SYNC_FLUSH


@pytest.mark.parametrize("wrong", ["sync_flush", "SYNC", "", 7, None, True])
def test_what_names_no_member_of_an_enum_is_refused(wrong):
    said = "flush_disk_type is .*; it is one of ASYNC_FLUSH, SYNC_FLUSH"
    with pytest.raises(ValueError, match=said):
        StoreConfig(flush_disk_type=wrong)


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        (StoreConfig, {"max_index_num": "9"}, "max_index_num is '9'; it is a number"),
        (StoreConfig, {"max_index_num": 9.5}, "max_index_num is 9.5; it is a whole number"),
        (StoreConfig, {"mapped_file_size_commit_log": True}, "it is a number"),
        (StoreConfig, {"flush_interval_commit_log_ms": 0}, "it must be 1 to 2147483647"),
        (StoreConfig, {"max_message_size": -1}, "it must be 1 to 2147483647"),
        (StoreConfig, {"disk_space_clean_forcibly_ratio": 85}, "is 85; it must be 0 to 1"),
        (StoreConfig, {"disk_space_clean_forcibly_ratio": float("nan")}, "it must be 0 to 1"),
        (StoreConfig, {"delete_when": 4}, "delete_when is 4; it is a str"),
        (StoreConfig, {"delete_when": "25"}, "delete_when: '25' is not a list of hours"),
        (StoreConfig, {"message_delay_level": "1"}, "'1' is not a number followed by"),
        (
            StoreConfig,
            {"message_delay_level": " "},
            "message_delay_level is .*; it must not be empty",
        ),
        (BrokerConfig, {"broker_permission": "2"}, "broker_permission is '2'; it is a number"),
        (BrokerConfig, {"flush_consumer_offset_interval_ms": 0}, "it must be 1 to 2147483647"),
        (BrokerConfig, {"broker_name": None}, "broker_name is None; it is a str"),
        (BrokerConfig, {"broker_name": ""}, "broker_name is .*; it must not be empty"),
        (BrokerConfig, {"store_host": "localhost"}, "store_host: 'localhost' is not ip:port"),
        (BrokerConfig, {"born_host": 5}, "born_host is 5; it is a str"),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_refused(kind, settings, said):
    for make in (kind, kind().with_, lambda **given: replace(kind(), **given)):
        with pytest.raises(ValueError, match=said):
            make(**settings)


@pytest.mark.parametrize(
    "name",
    [
        "mapped_file_size_commit_log",
        "mapped_file_size_consume_queue",
        "max_hash_slot_num",
        "max_index_num",
    ],
)
def test_a_size_that_no_opener_would_take_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        StoreConfig().with_(**{name: 20 * 2**31})
