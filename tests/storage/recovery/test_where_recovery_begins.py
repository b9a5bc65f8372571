"""Which files recovery reads: of the log, and of the index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.files.fs import FileSystem
from storage.files.mapped_file_queue import MappedFileQueue
from storage.format.index_file import IndexHeader
from storage.recovery.index import IndexRecovery
from storage.recovery.log import LogRecovery
from tests.support.hand_made import START_MS, TINY, HandMade

HIGHER: Any = None
"""A part that recovery does not use here."""


def log_of(root: Path, files: int) -> MappedFileQueue:
    made = HandMade(TINY)
    while made.log_end < files * 1024 - 200:
        made.put("T")
    made.write(root)
    log = MappedFileQueue(FileSystem(), root / "commitlog", 1024, writable=False)
    assert len(log.offsets()) == files
    return log


@pytest.mark.parametrize(("files", "first"), [(1, 0), (2, 0), (3, 0), (4, 1), (6, 3)])
def test_after_a_clean_stop_the_last_three_files_of_the_log_are_read(
    tmp_path: Path, files: int, first: int
) -> None:
    """CommitLog.recoverNormally; however old the checkpoint is."""
    log = log_of(tmp_path, files)
    recovery = LogRecovery(FileSystem(), tmp_path, log, clean_shutdown=True)
    assert recovery.start_file(0) == recovery.start_file(1 << 60) == first


@pytest.mark.parametrize(("early_ms", "first"), [(0, 3), (1, 2), (1 << 40, 0)])
def test_after_a_kill_the_newest_file_that_begins_before_the_checkpoint_is_the_first(
    tmp_path: Path, early_ms: int, first: int
) -> None:
    log = log_of(tmp_path, 4)
    recovery = LogRecovery(FileSystem(), tmp_path, log, clean_shutdown=False)
    begin = recovery._timestamp_at(3 * 1024)
    assert begin is not None
    assert recovery.start_file(begin - early_ms) == first


@pytest.mark.parametrize(
    ("vouched", "count"),
    [(0, 0), (START_MS + 999, 0), (START_MS + 1000, 1), (START_MS + 1001, 2), (1 << 60, 3)],
)
def test_of_two_index_files_that_end_at_the_vouched_time_one_is_vouched_for(
    tmp_path: Path, vouched: int, count: int
) -> None:
    """The checkpoint may have been written for the first of them, before the second was full."""
    made = HandMade(TINY.with_(mapped_file_size_commit_log=1 << 20))
    for number in range(4 * 39):
        made.put("T", keys=["k"], step_ms=1000 if number in {0, 80} else 0)
    made.write(tmp_path)
    names = sorted(path.name for path in (tmp_path / "index").iterdir())
    assert len(names) == 4
    recovery = IndexRecovery(FileSystem(), tmp_path, TINY, HIGHER, HIGHER)
    assert recovery._count_vouched(names[:3], vouched) == count


@pytest.mark.parametrize(("early_ms", "passed"), [(0, True), (1, False)])
def test_damage_is_passed_if_the_checkpoint_vouches_for_the_record_behind_it(
    tmp_path: Path, early_ms: int, passed: bool
) -> None:
    """A record that was stored at the very time of the checkpoint is vouched for."""
    made = HandMade(TINY)
    for _ in range(3):
        made.put("T")
    _, damaged, following = made.messages
    place = damaged.commitlog_offset
    made.log[place : place + damaged.size] = b"?" * damaged.size
    made.write(tmp_path)
    log = MappedFileQueue(FileSystem(), tmp_path / "commitlog", 1024, writable=False)
    recovery = LogRecovery(FileSystem(), tmp_path, log, clean_shutdown=False)
    _, end = recovery.walk(0, following.store_timestamp - early_ms)
    assert end == (made.log_end if passed else place)


def test_all_keys_of_a_record_are_whole_entries_of_the_index(tmp_path: Path) -> None:
    """They have one log offset; entries are whole as far as offsets do not go back."""
    made = HandMade(TINY)
    for number in range(4):
        made.put("T", keys=["a", f"b{number}", "c"])
    made.write(tmp_path)
    [path] = (tmp_path / "index").iterdir()
    header = IndexHeader.unpack_from(path.read_bytes()[:40])
    fs = FileSystem()
    fd = fs.open(path, writable=False)
    try:
        recovery = IndexRecovery(fs, tmp_path, TINY, HIGHER, HIGHER)
        assert len(recovery._prefix(fd, header, made.log_end)) == 12
        last = made.messages[3].commitlog_offset
        assert len(recovery._prefix(fd, header, last)) == 9
        assert len(recovery._prefix(fd, header, last + 1)) == 12
    finally:
        fs.close(fd)
