"""Old files go as in RocketMQ: by age, at their hour, never the last of a kind."""

import os
from pathlib import Path

import pytest

from storage.files.fs import FileSystem
from storage.format.checkpoint import CheckpointData
from storage.format.index import IndexHeader
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.writing.retention import HOUR_MS
from tests.support.samples import START_MS, TINY, Sample, Ticking, batch, new_store, prepared

CONFIG = TINY.with_(delete_when="", file_reserved_time_hours=2, disk_max_used_space_ratio=100)


def filled(root: Path, config=CONFIG) -> tuple[MessageStore, Ticking]:
    """A store with several log files, all "written" at the time of their messages."""
    clock = Ticking()
    store = MessageStore(
        new_store(root, config),
        config,
        exclusive=False,
        clock=clock,
        fs=FileSystem(),
        gate_timeout_ms=1000,
    )
    for number in range(10):
        store.put(prepared(batch(f"m{number}", 5, "A", (0, 1), size=300)))
    for path in (root / "commitlog").iterdir():
        os.utime(path, (START_MS / 1000, START_MS / 1000))
    return store, clock


@pytest.mark.conformance("A18")
def test_files_stay_until_their_time_is_over(tmp_path: Path) -> None:
    store, clock = filled(tmp_path / "s")
    with store:
        clock.now = START_MS + 2 * HOUR_MS - 60_000
        assert store.clean(manual=True).log_files == ()
        clock.now = START_MS + 2 * HOUR_MS
        assert len(store.clean(manual=True).log_files) > 0


def test_the_hour_decides_unless_asked_by_hand(tmp_path: Path) -> None:
    store, clock = filled(tmp_path / "s")
    with store:
        clock.now = START_MS + 3 * HOUR_MS
        assert store.clean().log_files == ()
        assert store.clean(manual=True).log_files


@pytest.mark.conformance("A18")
def test_queue_and_index_files_follow_and_the_last_of_each_stays(tmp_path: Path) -> None:
    root = tmp_path / "s"
    store, clock = filled(root)
    with store:
        view = store.view
        last = view.max_offset_in_queue("A", 0)
        clock.now = START_MS + 3 * HOUR_MS
        while (cleaned := store.clean(manual=True)).log_files:
            assert len(cleaned.log_files) <= 10
        assert len(list((root / "commitlog").iterdir())) == 1
        assert len(list((root / "consumequeue/A/0").iterdir())) >= 1
        assert len(list((root / "index").iterdir())) >= 1
        low = view.min_offset_in_queue("A", 0)
        assert 0 < low <= last
        assert view.max_offset_in_queue("A", 0) == last
        for offset in range(low, last):
            assert view.get_message("A", 0, offset, 1).messages, offset
        assert view.get_message("A", 0, 0, 1).next_begin_offset == low

        store.put(prepared([Sample("after", "A")]))
        assert view.get_message("A", 0, last, 1).messages[0].body == Sample("after", "A").body()

    with StoreView.open(root) as fresh:
        assert fresh.min_offset_in_queue("A", 0) == low


def test_a_reader_that_was_there_before_sees_the_new_minimum(tmp_path: Path) -> None:
    root = tmp_path / "s"
    store, clock = filled(root)
    with store, StoreView.open(root) as reader:
        assert reader.get_message("A", 0, 0, 1).messages
        clock.now = START_MS + 3 * HOUR_MS
        assert store.clean(manual=True).log_files
        answer = reader.get_message("A", 0, 0, 1)
        assert answer.status == "OFFSET_TOO_SMALL"
        assert answer.next_begin_offset == store.view.min_offset_in_queue("A", 0)


@pytest.mark.parametrize("reopened", [False, True])
def test_what_retention_left_is_a_store_that_opens(tmp_path: Path, reopened: bool) -> None:
    root = tmp_path / "s"
    store, clock = filled(root)
    clock.now = START_MS + 3 * HOUR_MS
    store.clean(manual=True)
    bounds = {queue: store.view.queue_bounds(*queue) for queue in store.view.queues()}
    store.close()
    if reopened:
        (root / "rmqctl/shared").unlink()  # no page: the bounds come from the files
    with MessageStore.open(root, CONFIG) as again:
        assert (again.recovery is not None) is reopened
        assert bounds == {queue: again.view.queue_bounds(*queue) for queue in again.view.queues()}


def test_keys_that_are_pending_are_put_while_their_records_are_there(tmp_path: Path) -> None:
    root = tmp_path / "s"
    config = CONFIG.with_(max_index_num=1000)
    store, clock = filled(root, config)
    with store:
        for number in range(30):
            store.put(prepared([Sample(f"single-{number}", "A", size=300)]))
        first = store.view.bounds.keys_from()
        for path in (root / "commitlog").iterdir():
            os.utime(path, (START_MS / 1000, START_MS / 1000))
        clock.now = START_MS + 3 * HOUR_MS
        assert store.clean(manual=True).log_files
        assert first < store.view.log_min_offset()
        assert store.view.bounds.keys_from() == store.log_end
    [index] = (root / "index").iterdir()
    with index.open("rb") as file:
        assert IndexHeader.unpack_from(file.read(40)).next_entry == 1 + 50 * 2 + 30


def test_a_full_index_file_that_was_deleted_takes_back_nothing_that_the_checkpoint_says(
    tmp_path: Path,
) -> None:
    root = tmp_path / "s"
    store, _ = filled(root)
    with store:
        before = CheckpointData.unpack((root / "checkpoint").read_bytes())
        assert before.index_msg_timestamp > 0
        store._flusher.note_full_index(root / "index" / "20000101000000000")
        assert CheckpointData.unpack((root / "checkpoint").read_bytes()) == before
