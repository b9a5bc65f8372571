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
