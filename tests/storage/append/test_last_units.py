"""Which units of a queue file the fast paths take: all that have blocks, the last one included, and
none after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.append import fast_append_batch
from storage.format.encode_column import prepare_column
from storage.format.prepared_table import PreparedTable
from storage.readonly import StoreView
from storage.results import PutMessageResult
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.samples import HOST, SMALL, START_MS, Sample, Ticking, new_store, open_store

UNIT = 20
IN_FILE = 10
SHORT = SMALL.with_(
    mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=UNIT * IN_FILE
)
LONG = SHORT.with_(
    mapped_file_size_consume_queue=UNIT * 30_000, mapped_file_size_commit_log=8 << 20
)
"""A queue file of several windows: blocks are there for the first one only."""
FORMS = [pytest.param(True, marks=needs_compiled, id="compiled"), pytest.param(False, id="pure")]


def put_quickly(store: MessageStore, name: str) -> bool:
    """Whether the fast path stores one message, without learning anything new."""
    with store.write_lock():
        return store._appender.one.quick(Sample(name, "T").inner(), START_MS) is not None


def column(count: int) -> PreparedTable:
    records = prepare_column(
        "T",
        [0] * count,
        [b"body"] * count,
        born_timestamp=START_MS,
        born_host=HOST,
        store_host=HOST,
        unique_ids=[b"%08d" % number for number in range(count)],
        keys=None,
    )
    assert type(records) is PreparedTable
    return records


def what_is_unknown(store: MessageStore, count: int) -> object:
    """What the compiled form of batches lacks for so many messages; None if it stored them."""
    with store.write_lock():
        store._appender.one._keys.put()
        found = store._appender.one.compiled.append_batch(*column(count).parts, START_MS)
    return None if type(found) is PutMessageResult else found


@pytest.mark.parametrize("is_compiled", FORMS)
def test_the_short_way_takes_the_last_unit_of_a_queue_file(
    is_compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled if is_compiled else None)
    root = new_store(tmp_path / "store", SHORT)
    with open_store(root, SHORT, clock=Ticking(step=0)) as store:
        for number in range(IN_FILE - 1):
            store.put_message(Sample(f"{number}", "T").inner())
        with store.write_lock():
            assert store._appender.one.learn("T", 0), "there is room for one unit"
            assert not store._appender.one.learn("T", 0, 2)
        assert put_quickly(store, "the last one of the file")
        assert not put_quickly(store, "there is no next file")
        for number in range(IN_FILE):
            store.put_message(Sample(f"next-{number}", "T").inner())
    assert_whole(root, 2 * IN_FILE)


@pytest.mark.parametrize("is_compiled", FORMS)
def test_the_short_way_stores_no_unit_where_there_are_no_blocks(
    is_compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store into a hole of the file would end the process where the disk is full."""
    monkeypatch.setattr(native, "compiled", compiled if is_compiled else None)
    root = new_store(tmp_path / "store", LONG)
    with open_store(root, LONG, clock=Ticking(step=0)) as store:
        for number in range(9):  # until the fast path has log, queue and index
            store.put_message(Sample(f"{number}", "T").inner())
        with_blocks = store._appender.one._topics["T"][0].last // UNIT + 1
        assert 9 < with_blocks < LONG.mapped_file_size_consume_queue // UNIT
        go_on_at(store, with_blocks - 1)
        assert put_quickly(store, "the last one with blocks")
        assert not put_quickly(store, "the first one without")


@needs_compiled
def test_a_batch_takes_all_units_of_a_queue_file_and_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    root = new_store(tmp_path / "store", SHORT)
    with open_store(root, SHORT, clock=Ticking(step=0)) as store:
        no_queue = fast_append_batch._NO_QUEUE
        store.put(column(2))
        store.put(column(2))
        assert what_is_unknown(store, IN_FILE - 3) == no_queue
        assert what_is_unknown(store, IN_FILE - 4) is None
        assert what_is_unknown(store, 2) == no_queue, "there is no next file"
        store.put(column(IN_FILE))
    assert_whole(root, 2 * IN_FILE)


@needs_compiled
def test_a_batch_stores_no_unit_where_there_are_no_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    root = new_store(tmp_path / "store", LONG)
    with open_store(root, LONG, clock=Ticking(step=0)) as store:
        no_queue = fast_append_batch._NO_QUEUE
        store.put(column(2))
        store.put(column(2))
        with_blocks = store._appender.one._topics["T"][0].last // UNIT + 1
        go_on_at(store, with_blocks - 5)
        assert what_is_unknown(store, 6) == no_queue
        assert what_is_unknown(store, 5) is None


def go_on_at(store: MessageStore, queue_offset: int) -> None:
    """Have the queue go on at an offset, as if as many messages had been stored."""
    slot = store._shared.slot("T", 0)
    assert slot is not None
    store._shared.words[store._shared.slot_word(slot)] = queue_offset


def assert_whole(root: Path, count: int) -> None:
    with StoreView.open(root) as view:
        assert fsck(view).findings == []
        assert view.max_offset_in_queue("T", 0) == count
