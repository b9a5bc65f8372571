"""Keys of single messages are put into the index later, and found all the same."""

from __future__ import annotations

import random
import shutil
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.coordination.shared_state import SharedStateBounds
from storage.format.encode import prepare, prepare_pure
from storage.index import pending_keys
from storage.index.pending_keys import MOST_PENDING
from storage.read.scan_bounds import ScanBounds
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support import largest_store
from tests.support.broken_off import broken_off
from tests.support.copies import copy_store
from tests.support.crash import inspect
from tests.support.oracle import Found
from tests.support.samples import (
    START_MS,
    TINY,
    Sample,
    Ticking,
    batch,
    new_store,
    open_store,
    prepared,
)
from tests.support.slim import Slim

ROOMY = TINY.with_(
    mapped_file_size_commit_log=64 << 10,
    mapped_file_size_consume_queue=20 * 1000,
    max_hash_slot_num=100,
    max_index_num=900,
)


def sample(number: int) -> Sample:
    return Sample(f"id-{number}", "TU"[number % 2], keys=(f"key-{number % 7}",) * (number % 3))


def put(store: MessageStore, *numbers: int) -> None:
    for number in numbers:
        store.put(prepared([sample(number)]))


def pending(store: MessageStore) -> bool:
    bounds = store.view.bounds
    return bounds.keys_from() < bounds.log_end()


def check_all_are_found(view: StoreView, count: int) -> None:
    """Each id leads to its message, each key to all messages that have it."""
    for number in range(count):
        [found] = view.find_unique(sample(number).topic, f"id-{number}")
        assert found.msg_id == f"id-{number}"
    for topic in "TU":
        for key in {key for number in range(count) for key in sample(number).keys}:
            wanted = [
                f"id-{number}"
                for number in range(count)
                for each in sample(number).keys
                if (each, sample(number).topic) == (key, topic)
            ]
            found_ids = [m.msg_id for m in view.query_message(topic, key, 64).messages]
            assert found_ids == wanted[-64:]
    findings = fsck(view).findings
    assert [finding for finding in findings if finding.code.startswith("INDEX")] == []


def test_acknowledged_keys_are_found_at_once_by_every_view(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY) as store, StoreView.open(root) as early:
        put(store, *range(40))
        assert pending(store)
        for view in (store.view, early):
            assert isinstance(view.bounds, SharedStateBounds)
            check_all_are_found(view, 40)
        put(store, 40)
        check_all_are_found(early, 41)
        store.flush()
        assert not pending(store)
        check_all_are_found(early, 41)
        put(store, 41)
        check_all_are_found(early, 42)


def test_they_are_found_in_a_copy_that_is_made_beside_the_writer(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY) as store:
        put(store, *range(30))
        assert pending(store)
        copy = copy_store(root, tmp_path / "copy", ignore=shutil.ignore_patterns("bells"))
    with StoreView.open(copy) as view:
        assert isinstance(view.bounds, ScanBounds)
        check_all_are_found(view, 30)


def test_recovery_puts_them_when_the_page_is_lost(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY) as store:
        put(store, *range(30))
        copy = copy_store(root, tmp_path / "copy", ignore=shutil.ignore_patterns("bells"))
    with open_store(copy, ROOMY, clock=Ticking(START_MS + 1_000_000)) as store:
        assert store.recovery is not None
        assert store.recovery.keys_written > 20
        assert not pending(store)
        put(store, 30)
    found = Found(copy, ROOMY)
    found.check_clean_end()
    assert found.problems == []
    with StoreView.open(copy) as view:
        check_all_are_found(view, 31)


@pytest.mark.slow
def test_no_more_than_some_of_them_are_pending(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY) as one, open_store(root, ROOMY) as two:
        most = 0
        for number in range(0, 4 * MOST_PENDING, 2):
            put(one, number)
            put(two, number + 1)
            most = max(most, one.log_end - one.view.bounds.keys_from())
        size = one.log_end / (4 * MOST_PENDING)
        assert MOST_PENDING / 2 < most / size <= 2 * MOST_PENDING + 2


@pytest.mark.parametrize("writers", [1, 3])
@pytest.mark.parametrize("count", [250, 2600])
def test_the_index_is_the_same_as_if_they_were_put_at_once(
    tmp_path: Path, writers: int, count: int
) -> None:
    at_once = new_store(tmp_path / "at once", ROOMY)
    with open_store(at_once, ROOMY, clock=Ticking()) as store:
        for number in range(count):
            store.put(prepare_pure([sample(number).inner()]))
            assert not pending(store)
    later = new_store(tmp_path / "later", ROOMY)
    clock = Ticking()
    with ExitStack() as opened:
        stores = [
            opened.enter_context(open_store(later, ROOMY, clock=clock)) for _ in range(writers)
        ]
        for number in range(count):
            put(stores[number // (1 + number % 5) % writers], number)
    wanted, found = list(index_files(at_once)), list(index_files(later))
    assert len(wanted) > 3 or count < 1000
    assert found == wanted
    assert Found(later, ROOMY).problems == []


def index_files(root: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted((root / "index").iterdir()):
        yield path.name, path.read_bytes()


def test_keys_that_another_process_has_put_are_not_put_again(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY) as one, open_store(root, ROOMY) as two:
        for first in (0, 100):
            put(one, *range(first, first + 30))
            two.flush()
            assert not pending(one)
            put(one, *range(first + 30, first + 60))
            put(two, *range(first + 60, first + 70))
            put(one, *range(first + 70, first + 100))
            one.flush()
            assert not pending(two)
    found = Found(root, ROOMY)
    found.check_clean_end()
    assert found.problems == []


def test_a_batch_comes_behind_the_single_ones(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY) as store:
        for number in range(6):
            put(store, number)
            several = [one.inner() for one in batch(f"b{number}", 50 * (number % 2) + 3, "T", (0,))]
            store.put(prepare(several))
            assert not pending(store)
    found = Found(root, ROOMY)
    found.check_clean_end()
    assert found.problems == []


def test_answers_do_not_change_when_they_are_put(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=331)) as store:
        put(store, *range(20))
        store.flush()
        put(store, *range(20, 50))
        assert pending(store)
        questions = [
            (topic, key, most, START_MS + begin, START_MS + begin + length)
            for topic in "TU"
            for key in ("key-1", "key-2", "id-30", "nothing")
            for most in (1, 3, 32)
            for begin in range(0, 20_000, 701)
            for length in (0, 900, 5_000, 40_000)
        ]
        before = [store.view.query_message(*question) for question in questions]
        store.flush()
        after = [store.view.query_message(*question) for question in questions]
    assert sum(bool(found.messages) for found in after) > 100
    for one, other in zip(before, after, strict=True):
        assert [m.commitlog_offset for m in one.messages] == [
            m.commitlog_offset for m in other.messages
        ]
        if one.messages:
            assert one[2:] == other[2:]


@pytest.mark.slow
def test_a_reader_misses_nothing_while_they_are_put(tmp_path: Path) -> None:
    config = ROOMY.with_(mapped_file_size_commit_log=4 << 20, max_hash_slot_num=7)
    root = new_store(tmp_path / "store", config)
    acknowledged = 0
    stop = threading.Event()

    def write() -> None:
        nonlocal acknowledged
        for number in range(200_000):
            if stop.is_set():
                break
            store.put_message(Sample(f"id-{number}", "T").inner())
            acknowledged = number + 1

    chance = random.Random(7)
    interval = sys.getswitchinterval()
    with open_store(root, config) as store, StoreView.open(root, config) as view:
        writer = threading.Thread(target=write)
        sys.setswitchinterval(5e-5)
        try:
            writer.start()
            asked = rounds = 0
            keys_from = view.bounds.keys_from()
            deadline = time.monotonic() + 60
            while (asked < 300 or rounds < 5) and time.monotonic() < deadline:
                known = acknowledged
                if known:
                    one = chance.choice((known - 1, chance.randrange(known)))
                    assert len(view.find_unique("T", f"id-{one}")) == 1, (one, known)
                    asked += 1
                rounds += view.bounds.keys_from() != keys_from
                keys_from = view.bounds.keys_from()
        finally:
            sys.setswitchinterval(interval)
            stop.set()
            writer.join()
    assert rounds >= 5, "keys were put while they were asked for"


def test_who_leaves_puts_his_own(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY) as stays:
        put(stays, 0)
        for number in range(1, 10):
            with open_store(root, ROOMY) as comes:
                put(comes, number)
                assert pending(stays)
            assert not pending(stays)


def test_an_idle_writer_puts_them_by_and_by(tmp_path: Path) -> None:
    config = ROOMY.with_(flush_interval_commit_log_ms=10)
    root = new_store(tmp_path / "store", config)
    with open_store(root, config) as store:
        put(store, *range(5))
        deadline = time.monotonic() + 20
        while pending(store):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert any((root / "index").iterdir())


def test_a_store_without_an_index_has_none_pending(tmp_path: Path) -> None:
    config: StoreConfig = ROOMY.with_(message_index_enable=False)
    root = new_store(tmp_path / "store", config)
    with open_store(root, config) as store:
        put(store, *range(5))
        assert store.view.find_unique("T", "id-2") == []
    assert not (root / "index").exists() or not any((root / "index").iterdir())
    (keys_from,) = struct.unpack_from("<q", (root / "rmqctl" / "shared").read_bytes(), 14 * 8)
    with StoreView.open(root) as view:
        assert keys_from == view.log_max_offset()


@pytest.mark.slow
def test_many_keys_at_once_are_not_stored_through_the_map(tmp_path: Path) -> None:
    """Blocks are reserved for 64 KiB before a window's end, and a hole there would be SIGBUS
    on a full disk."""
    root = new_store(tmp_path / "store", largest_store.ROOMY)
    open_store(root, largest_store.ROOMY).close()  # recovery needs NumPy
    found = Slim("tests.support.largest_store:largest_store", root=str(root), keys=8).result()
    assert found["numpy"] is False, "which goes another way"
    assert found["largest"] <= 64 << 10
    assert inspect(root, largest_store.ROOMY).problems == []


def test_a_signal_among_the_keys_puts_none_twice(tmp_path: Path) -> None:
    def opened(number: int) -> tuple[MessageStore, MessageStore]:
        root = new_store(tmp_path / str(number), ROOMY)
        ours, other = open_store(root, ROOMY), open_store(root, ROOMY)
        for each in range(6):
            one = (ours, other)[each % 3 == 2]
            one.put_message(Sample(f"id-{each}", "T", keys=("k",)).inner())
        return ours, other

    ours, other = opened(0)
    last = Sample("last", "T", keys=("k",)).inner()
    instants = 0
    for number in broken_off(lambda: ours.put_message(last), pending_keys):  # noqa: B023
        ours.put_message(Sample("then", "T", keys=("k",)).inner())
        other.put_message(Sample("behind", "T", keys=("k",)).inner())
        ours.close()
        other.close()
        assert inspect(tmp_path / str(number), ROOMY).problems == []
        instants += 1
        ours, other = opened(number + 1)
    assert instants
    ours.close()
    other.close()
