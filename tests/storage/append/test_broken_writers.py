"""A writer that takes no messages any more, on a full disk or after an error: old files are deleted
all the same, by it or by another process."""

from __future__ import annotations

import errno
import os
import resource
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from storage.config import FlushDiskType
from storage.errors import StoreBrokenError, StoreError, StoreNotWritableError
from storage.files.fs import FileSystem
from storage.readonly import StoreView
from storage.results import PutMessageStatus
from storage.retention import HOUR_MS
from storage.tools.fsck import Severity, fsck
from tests.support.samples import (
    START_MS,
    TINY,
    Sample,
    Ticking,
    new_store,
    open_store,
    prepared,
)

CONFIG = TINY.with_(file_reserved_time_hours=2)
OFTEN = TINY.with_(flush_interval_commit_log_ms=1)


class _Full(FileSystem):
    """A disk without room for a file, or for more of a file, while ``is_full``."""

    def __init__(self) -> None:
        self.is_full = False

    def _refuse(self, path: Path) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def create_beside(self, path: Path, folder: Path | None = None) -> tuple[int, Path]:
        self._refuse(path)
        return super().create_beside(path, folder)

    def reserve(self, fd: int, offset: int, length: int) -> None:
        self._refuse(Path(f"/proc/self/fd/{fd}"))
        super().reserve(fd, offset, length)


@pytest.mark.parametrize("queues", [1, 7])
@pytest.mark.parametrize("met_by", ["put", "flush", "clean"])
def test_old_files_are_deleted_on_a_full_disk(tmp_path: Path, queues: int, met_by: str) -> None:
    root = new_store(tmp_path / "s", CONFIG)
    fs, clock = _Full(), Ticking()
    store = open_store(root, CONFIG, fs=fs, clock=clock)

    def put(number: int) -> None:
        sample = Sample(f"m{number}", "A", number % queues, 200, keys=(f"key-{number}",))
        store.put_message(sample.inner())

    def meet_it() -> None:
        for number in range(100, 200):  # until one needs a file
            store.flush() if met_by == "flush" else put(number)

    for number in range(100):
        put(number)
        if number == 60:
            store.flush()  # the keys of the others stay pending
    fs.is_full = True
    if met_by == "clean":
        assert store.clean(manual=True).log_files == ()
    else:
        with pytest.raises(StoreBrokenError, match="No space left"):
            meet_it()
    before = len(list((root / "commitlog").iterdir()))
    for path in (root / "commitlog").iterdir():
        os.utime(path, (START_MS / 1000, START_MS / 1000))
    clock.now = START_MS + 3 * HOUR_MS
    cleaned = store.clean(manual=True)
    assert len(cleaned.log_files) > 1
    assert len(list((root / "commitlog").iterdir())) == before - len(cleaned.log_files)
    fs.is_full = False
    store.close()
    with open_store(root, CONFIG, clock=clock) as store:
        put(1_000)
    with StoreView.open(root) as view:
        findings = fsck(view).findings
        assert [found for found in findings if found.severity is not Severity.INFO] == []
        for number in (99, 1_000):
            assert len(view.query_message("A", f"key-{number}").messages) == 1


class _FullOfOthers(_Full):
    """The same disk, where what has blocks can be reserved again."""

    def reserve(self, fd: int, offset: int, length: int) -> None:
        if os.fstat(fd).st_blocks * 512 < offset + length:
            super().reserve(fd, offset, length)


@pytest.mark.parametrize("queues", [1, 7])
@pytest.mark.parametrize("met_by", ["put", "flush", "opening"])
def test_a_store_that_a_full_disk_left_is_opened_and_old_files_are_deleted(
    tmp_path: Path, queues: int, met_by: str
) -> None:
    """Only a writer can delete them: it must not wait for the room that this makes."""
    root = new_store(tmp_path / "s", CONFIG)
    fs, clock = _FullOfOthers(), Ticking()

    def put(number: int) -> None:
        sample = Sample(f"m{number}", "A", number % queues, 200, keys=(f"key-{number}",))
        store.put_message(sample.inner())

    def meet_it() -> None:
        for number in range(100, 200):
            store.flush() if met_by == "flush" else put(number)

    store = open_store(root, CONFIG, fs=fs, clock=clock)
    for number in range(100):
        put(number)
        if number == 60:
            store.flush()
    fs.is_full = True
    if met_by != "opening":
        with pytest.raises(StoreBrokenError, match="No space left"):
            meet_it()
    with pytest.raises(StoreError):
        store.close()
    for path in (root / "commitlog").iterdir():
        os.utime(path, (START_MS / 1000, START_MS / 1000))
    clock.now = START_MS + 3 * HOUR_MS
    store = open_store(root, CONFIG, fs=fs, clock=clock)
    with pytest.raises(StoreError):
        store.close()
    store = open_store(root, CONFIG, fs=fs, clock=clock)
    assert len(store.clean(manual=True).log_files) > 1
    fs.is_full = False
    store.close()
    with open_store(root, CONFIG, clock=clock) as store:
        put(1_000)
    with StoreView.open(root) as view:
        findings = fsck(view).findings
        assert [found for found in findings if found.severity is not Severity.INFO] == []
        for number in (99, 1_000):
            assert len(view.query_message("A", f"key-{number}").messages) == 1


class _Strange(FileSystem):
    """Each sync ends in an error that no code expects, from when ``is_strange`` is set."""

    is_strange = False

    def sync(self, fd: int) -> None:
        if self.is_strange:
            raise struct.error("no such struct")
        super().sync(fd)


def test_another_process_is_elected_when_the_flush_thread_ends(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", OFTEN)
    fs = _Strange()
    with open_store(root, TINY) as other:
        store = open_store(root, OFTEN, fs=fs)

        def elected() -> list[bool]:
            other.services.tick()
            return [store.services.elected, other.services.elected]

        store._flush_service.tick()
        assert elected() == [True, False]
        store.put(prepared([Sample("m0", "T")]))
        fs.is_strange = True
        store.put(prepared([Sample("m1", "T")]))
        thread = store._flush_service._thread
        assert thread is not None
        thread.join(20)
        assert elected() == [False, True]
        fs.is_strange = False
        store.close()


def test_what_ended_the_flush_thread_is_told(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    config = OFTEN.with_(flush_consume_queue_thorough_interval_ms=1)
    (root / "checkpoint").unlink(missing_ok=True)
    store = open_store(root, config)
    (root / "checkpoint").mkdir()
    store.put(prepared([Sample("m0", "T")]))
    thread = store._flush_service._thread
    assert thread is not None
    thread.join(20)
    with pytest.raises(StoreBrokenError, match=r"checkpoint is damaged.* it is no file"):
        store.put(prepared([Sample("m1", "T")]))
    (root / "checkpoint").rmdir()
    store.close()


class _NoDescriptors(FileSystem):
    """Log files that are opened for a sync cannot be while ``are_used_up``."""

    def __init__(self) -> None:
        self.are_used_up = False
        self.refused, self.synced = threading.Semaphore(0), threading.Event()

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if self.are_used_up and path.parent.name == "commitlog" and not writable:
            self.refused.release()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return super().open(path, writable=writable, create=create)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self.synced.set()


def test_the_flush_thread_goes_on_when_a_descriptor_is_free_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fs = _NoDescriptors()
    with open_store(new_store(tmp_path / "s", OFTEN), OFTEN, fs=fs) as store:
        fs.are_used_up = True
        store.put(prepared([Sample("m0", "T")]))
        for _ in range(3):
            assert fs.refused.acquire(timeout=20)
        fs.synced.clear()
        fs.are_used_up = False
        assert fs.synced.wait(20)
        assert store.put(prepared([Sample("m1", "T")])).status is PutMessageStatus.PUT_OK
    messages = [record.message for record in caplog.records if "tried again" in record.message]
    assert len(messages) == 1
    assert "Too many open files" in messages[0]


class _NoMoreQueues(FileSystem):
    """Files of queues cannot be opened for writing while ``are_used_up``."""

    def __init__(self) -> None:
        self.are_used_up = False

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if self.are_used_up and writable and "consumequeue" in path.parts:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return super().open(path, writable=writable, create=create)


@pytest.mark.parametrize("flush", FlushDiskType)
@pytest.mark.parametrize("alone", [True, False])
def test_a_put_that_finds_no_descriptor_before_it_begins_breaks_nothing(
    tmp_path: Path, flush: FlushDiskType, alone: bool
) -> None:
    config = TINY.with_(flush_disk_type=flush)
    root = new_store(tmp_path / "s", config)
    with open_store(root, config) as store:
        for topic in ("T", "U"):
            store.put(prepared([Sample("m0", topic)]))
    fs = _NoMoreQueues()

    def put(name: str, topic: str) -> PutMessageStatus:
        if alone or topic == "U":  # which has room in its file
            return store.put_message(Sample(name, topic).inner()).status
        return store.put(prepared([Sample(name, topic), Sample(f"{name} too", topic)])).status

    with open_store(root, config, fs=fs) as store:
        assert put("m1", "U") is PutMessageStatus.PUT_OK
        fs.are_used_up = True
        for _ in range(2):
            with pytest.raises(StoreNotWritableError, match=r"Too many open files.* is stored"):
                put("never", "T")
        assert put("m2", "U") is PutMessageStatus.PUT_OK
        fs.are_used_up = False
        assert put("m1", "T") is PutMessageStatus.PUT_OK
    with StoreView.open(root) as view:
        assert fsck(view).healthy
        assert view.max_offset_in_queue("T", 0) == (2 if alone else 3)


class _NoMoreIndexes(FileSystem):
    """Files of the index cannot be opened for writing while ``are_used_up``."""

    def __init__(self) -> None:
        self.are_used_up = False

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if self.are_used_up and writable and "index" in path.parts:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return super().open(path, writable=writable, create=create)


def test_a_flush_that_finds_no_descriptor_for_keys_says_that_all_is_stored(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    fs = _NoMoreIndexes()
    with open_store(root, TINY) as store:
        store.put_message(Sample("m0", "T", keys=("k0",)).inner())
    with open_store(root, TINY, fs=fs) as store:
        store.put_message(Sample("m1", "T", keys=("k1",)).inner())
        fs.are_used_up = True
        with pytest.raises(StoreNotWritableError, match="open files.*all that was put is stored"):
            store.flush()
        fs.are_used_up = False
        store.flush()
        assert len(store.view.query_message("T", "k1").messages) == 1


@pytest.mark.parametrize("where", ["new queue", "full queue", "full log"])
def test_a_put_that_has_no_descriptor_for_a_new_file_breaks_nothing(
    tmp_path: Path, where: str
) -> None:
    config = TINY.with_(mapped_file_size_consume_queue=20_000) if where == "full log" else TINY
    root = new_store(tmp_path / "s", config)
    with open_store(root, config) as store:
        number = 0
        room = config.mapped_file_size_commit_log - 600
        while where == "full log" and store.log_end % config.mapped_file_size_commit_log < room:
            store.put_message(Sample(f"m{number}", "T", size=400).inner())
            number += 1
        while where == "full queue" and (number == 0 or number % (80 // 20)):
            store.put_message(Sample(f"m{number}", "T").inner())
            number += 1
        store.put_message(Sample("other", "U").inner())
        with _no_free_descriptor():
            for _ in range(2):
                with pytest.raises(StoreNotWritableError, match="nothing of this call is stored"):
                    store.put_message(Sample("x", "T", size=700).inner())
        offset = store.put_message(Sample("x", "T").inner()).queue_offsets[0]
        assert offset == number
    with StoreView.open(root) as view:
        assert fsck(view).healthy


@contextmanager
def _no_free_descriptor() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 50, before[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)
