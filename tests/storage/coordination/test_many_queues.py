"""The shared state grows while other processes have mapped less of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from storage.coordination import shared_state as page_module
from storage.coordination.shared_state import FIRST_SLOTS, SharedState
from storage.files.fs import FileSystem
from tests.support.broken_off import broken_off


def test_others_see_queues_that_came_when_the_page_had_grown(tmp_path: Path) -> None:
    (tmp_path / "rmqctl").mkdir()
    one = SharedState(FileSystem(), tmp_path, writable=True)
    reader, other_reader = (SharedState(FileSystem(), tmp_path, writable=False) for _ in range(2))
    writer, other_writer = (SharedState(FileSystem(), tmp_path, writable=True) for _ in range(2))
    last = FIRST_SLOTS + 9
    for number in range(last + 1):
        one.add_slot("T", number)
    one.set_next_offset(last, 8)
    one.set_synced_offset(last, 7)
    assert reader.slot("T", last) == last
    assert reader.next_offset(last) == 8
    assert other_reader.synced_offset(last) == 7
    writer.set_next_offset(last, 10)
    other_writer.set_synced_offset(last, 9)
    assert (one.next_offset(last), one.synced_offset(last)) == (10, 9)
    for shared in (one, reader, other_reader, writer, other_writer):
        shared.close()


@pytest.mark.parametrize("names_itself", [False, True], ids=["reads", "names"])
def test_a_signal_among_the_names_moves_no_queue(tmp_path: Path, names_itself: bool) -> None:
    fs = FileSystem()

    def pages(number: int) -> tuple[SharedState, SharedState]:
        root = tmp_path / str(number)
        (root / "rmqctl").mkdir(parents=True)
        one = SharedState(fs, root, writable=True)
        for queue_id in range(5):
            one.add_slot("T", queue_id)
        return one, SharedState(fs, root, writable=names_itself)

    def work() -> None:
        assert shared.slot("T", 3) == 3
        if names_itself:
            shared.add_slot("T", 5)

    one, shared = pages(0)
    instants = 0
    for number in broken_off(work, page_module):
        for queue_id in range(7 if names_itself else 5):
            found = shared.add_slot("T", queue_id) if names_itself else shared.slot("T", queue_id)
            assert found == one.slot("T", queue_id) == queue_id
        assert shared.queues() == one.queues()
        shared.close()
        one.close()
        instants += 1
        one, shared = pages(number + 1)
    assert instants > 20
    shared.close()
    one.close()


def test_closing_twice_closes_nothing_of_others(tmp_path: Path) -> None:
    (tmp_path / "rmqctl").mkdir()
    shared = SharedState(FileSystem(), tmp_path, writable=True)
    shared.add_slot("T", 0)
    own = {shared.fd, shared._names_fd}
    shared.close()
    others = {os.open(tmp_path, os.O_RDONLY) for _ in range(max(own) + 1)}
    try:
        assert own <= others, "the descriptors' numbers are others' now"
        shared.close()
        assert all(stat.S_ISDIR(os.fstat(number).st_mode) for number in others)
    finally:
        for number in others:
            os.close(number)
