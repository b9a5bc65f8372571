"""A writer of records with their own times, killed at every instant: a prefix of them is there."""

import random
from pathlib import Path

import numpy as np
import pytest

from storage.format.record import encode_record
from storage.readonly import StoreView
from storage.results import PutMessageStatus
from storage.store import MessageStore
from storage.tools.carve.columns import ExactEncoder
from storage.tools.fsck import fsck
from tests.support.crash import Child
from tests.support.every_instant import die_at
from tests.support.same_records import all_messages
from tests.support.samples import HOST, START_MS, TINY, new_store
from tests.support.watched_fs import WatchedFileSystem

QUEUES = [("old", 0), ("old", 1)]
COUNT = 12


def records(count: int = COUNT) -> list[bytes]:
    """In two queues in turns, a minute apart, with a key each."""
    return [
        encode_record(
            topic="old",
            queue_id=number % 2,
            body=b"n%d" % number,
            properties=b"KEYS\x01k%d" % number,
            queue_offset=0,
            physical_offset=0,
            store_timestamp=START_MS + number * 60_000,
            born_timestamp=START_MS,
            born_host=HOST,
            store_host=HOST,
        )
        for number in range(count)
    ]


def put(store: MessageStore, first: int, end: int) -> None:
    numbers = np.arange(first, end) % 2
    columns = ExactEncoder(QUEUES).columns(records()[first:end], numbers, None)
    assert store.put(columns).status is PutMessageStatus.PUT_OK


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_instants(tmp_path: Path, step: int) -> None:
    seen = set()
    chance = random.Random(5)
    number, killed = 0, True
    while killed:
        number += chance.randrange(1, step + 1)
        root = new_store(tmp_path / f"s{number}", TINY)

        def write(_: object, root: Path = root, number: int = number) -> None:
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            with MessageStore.open(root, TINY, fs=fs, clock=lambda: START_MS) as store:
                put(store, 0, 7)
                put(store, 7, COUNT)

        killed, _ = Child(write).wait()
        with MessageStore.open(root, TINY, clock=lambda: START_MS):
            pass
        with StoreView.open(root) as view:
            report = fsck(view)
            assert report.healthy, (number, report.findings)
            found = all_messages(view)
            assert [m.body for m in found] == [b"n%d" % n for n in range(len(found))]
            assert [m.store_timestamp for m in found] == [
                START_MS + n * 60_000 for n in range(len(found))
            ]
            for row, message in enumerate(found):
                hits = view.query_message("old", f"k{row}").messages
                assert [m.commitlog_offset for m in hits] == [message.commitlog_offset]
            seen.add(len(found))
    assert number > 100
    assert {0, COUNT} <= seen
    assert seen - {0, COUNT}


def test_times_before_the_newest_are_refused_and_nothing_of_them_is_stored(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with MessageStore.open(root, TINY, clock=lambda: START_MS) as store:
        put(store, 4, COUNT)
        end = store.log_end
        columns = ExactEncoder(QUEUES).columns(records()[:2], np.array([0, 1]), None)
        result = store.put(columns)
        assert result.status is PutMessageStatus.MESSAGE_ILLEGAL
        assert "the log has messages of" in result.reason
        assert store.log_end == end
    with StoreView.open(root) as view:
        assert len(all_messages(view)) == COUNT - 4
        assert fsck(view).healthy
