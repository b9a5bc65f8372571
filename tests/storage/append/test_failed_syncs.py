"""A sync that failed, perhaps in another process, where the kernel reports lost pages; and one that
could not begin."""

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

from storage.coordination.shared_state import (
    FILES_CONTRADICT,
    SYNC_FAILED,
    SharedState,
    Word,
)
from storage.errors import StoreBrokenError, StoreContradictionError, StoreNotWritableError
from storage.files.checkpoint_file import StoreCheckpoint
from storage.files.fs import FileSystem
from storage.readonly import StoreView
from storage.results import PutMessageStatus
from tests.support.durable_fs import DurableFileSystem
from tests.support.samples import (
    START_MS,
    TINY,
    Sample,
    new_store,
    open_store,
    prepared,
    sync_flush,
)


class _FailsElsewhere(FileSystem):
    """Another process's sync fails while ours goes well."""

    def __init__(self) -> None:
        self.elsewhere: SharedState | None = None

    def sync(self, fd: int) -> None:
        super().sync(fd)
        if self.elsewhere is not None:
            self.elsewhere.words[Word.FAILED] = 1


def test_a_put_is_not_acknowledged_if_the_sync_of_another_fails_meanwhile(tmp_path: Path) -> None:
    config = sync_flush(TINY)
    root = new_store(tmp_path / "s", config)
    fs = _FailsElsewhere()
    store = open_store(root, config, fs=fs)
    store.put(prepared([Sample("m0", "T")]))
    other = fs.elsewhere = SharedState(FileSystem(), root, writable=True)
    with pytest.raises(StoreBrokenError):
        store.put(prepared([Sample("m1", "T")]))
    store.close()
    assert (root / "abort").exists()
    other.close()


@pytest.mark.parametrize("flush", [False, True])
def test_files_that_contradict_each_other_are_told_by_every_writer(
    tmp_path: Path, flush: bool
) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root, TINY) as store:
        store.put(prepared([Sample(f"m{n}", "T") for n in range(4)]))
    (units,) = (root / "consumequeue" / "T" / "0").iterdir()
    data = bytearray(units.read_bytes())
    data[3 * 20 + 8 : 3 * 20 + 12] = bytes(4)  # the size of the last unit
    units.write_bytes(data)
    with open_store(root, TINY) as first, open_store(root, TINY) as second:
        second.put(prepared([Sample("other", "U")]))
        with pytest.raises(StoreContradictionError, match="queue 0 of T lacks places"):
            first.put(prepared([Sample("m4", "T")]))
        with pytest.raises(StoreContradictionError, match="contradicted each other earlier"):
            second.flush() if flush else second.put(prepared([Sample("another", "U")]))
    with open_store(root, TINY) as store:
        assert store.put(prepared([Sample("m4", "T")])).queue_offsets[0] == 4


def test_the_first_reason_to_refuse_stays(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root, TINY):
        shared = SharedState(FileSystem(), root, writable=True)
        shared.refuse_after_failure()
        shared.fail(SYNC_FAILED)
        shared.fail(FILES_CONTRADICT)
        with pytest.raises(StoreBrokenError, match="a sync of .* failed earlier"):
            shared.refuse_after_failure()
        shared.close()


class _Strange(FileSystem):
    """Each sync of the log ends in an error that no code expects, and that is noted."""

    def __init__(self) -> None:
        self.is_strange = False
        self.ended = threading.Event()

    def sync(self, fd: int) -> None:
        if self.is_strange:
            self.ended.set()
            raise struct.error("no such struct")
        super().sync(fd)


def test_a_flush_thread_that_ends_makes_the_store_refuse_and_say_why(tmp_path: Path) -> None:
    config = TINY.with_(flush_interval_commit_log_ms=1)
    fs = _Strange()
    store = open_store(new_store(tmp_path / "s", config), config, fs=fs)
    store.put(prepared([Sample("m0", "T")]))
    fs.is_strange = True
    store.put(prepared([Sample("m1", "T")]))
    assert fs.ended.wait(20)
    store._flush_service.stop()
    assert not store.services.elected, "another process cleans"
    with pytest.raises(StoreBrokenError, match="no such struct.*open the store anew"):
        store.put(prepared([Sample("m2", "T")]))
    fs.is_strange = False
    store.close()


@contextmanager
def _free_descriptors(count: int) -> Iterator[None]:
    """Leave this process so many free descriptors."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/", os.O_RDONLY)
    taken = [lowest]
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 40, limit[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open("/", os.O_RDONLY))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        for fd in taken:
            os.close(fd)


@pytest.mark.parametrize("free", [0, 1])
def test_without_a_descriptor_a_put_is_an_error_and_the_next_one_syncs_it(
    tmp_path: Path, free: int
) -> None:
    config = sync_flush(TINY)
    root = new_store(tmp_path / "s", config)
    fs = DurableFileSystem(root)
    with open_store(root, config, fs=fs) as store, open_store(root, config) as other:
        with store.write_lock():  # without a sync, and its files are open from now on
            store._appender.append(prepared([Sample("m0", "T")]), START_MS)
        with (
            _free_descriptors(free),
            pytest.raises(
                StoreNotWritableError, match="Too many open files.*; all that was put is stored"
            ),
        ):
            store.put(prepared([Sample("m1", "T")]))
        assert other._shared.words[Word.FAILED] == 0
        assert store.put(prepared([Sample("m2", "T")])).status is PutMessageStatus.PUT_OK
        with StoreView.open(fs.buffer(tmp_path / "cut"), config) as view:
            assert view.max_offset_in_queue("T", 0) == 3
        assert other.put(prepared([Sample("m3", "T")])).status is PutMessageStatus.PUT_OK
    fs.forget()


class _NotToday(FileSystem):
    """One kind of call fails while ``number`` is set: no file time can be set, or no checkpoint can
    be made."""

    def __init__(self, call: str) -> None:
        self._call = call
        self.number = 0

    def _fail(self, call: str, path: Path) -> None:
        if self.number and call == self._call:
            raise OSError(self.number, os.strerror(self.number), str(path))

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if path.name == "checkpoint":
            self._fail("checkpoint", path)
        return super().open(path, writable=writable, create=create)

    def set_modified(self, path: Path, timestamp_ms: int) -> None:
        self._fail("set_modified", path)
        super().set_modified(path, timestamp_ms)


@pytest.mark.parametrize(
    ("call", "number"),
    [("checkpoint", errno.ENOSPC), ("checkpoint", errno.EMFILE), ("set_modified", errno.EIO)],
)
def test_what_is_no_sync_can_fail_and_is_tried_again(
    tmp_path: Path, call: str, number: int
) -> None:
    root = new_store(tmp_path / "s", TINY)
    fs = _NotToday(call)
    with open_store(root, TINY, fs=fs) as store:
        store.put(prepared([Sample("m0", "T")]))
        fs.number = number
        with pytest.raises(StoreNotWritableError, match=os.strerror(number)):
            store.flush()
        assert store._shared.words[Word.FAILED] == 0
        assert store._shared.synced_offset(0) == (call == "checkpoint")
        store.put(prepared([Sample("m1", "T")]))
        fs.number = 0
        store.flush()
        assert store._shared.synced_offset(0) == 2
        assert StoreCheckpoint(fs, root).read().logics_msg_timestamp > START_MS


def test_the_time_of_another_users_file_is_left_to_a_later_sync(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    fs = _NotToday("set_modified")
    with open_store(root, TINY, fs=fs) as store:
        store.put(prepared([Sample("m0", "T")]))
        fs.number = errno.EACCES
        store.flush()
        assert store._shared.words[Word.FAILED] == 0
        assert StoreCheckpoint(fs, root).read().logics_msg_timestamp > START_MS
        assert store._shared.synced_offset(0) == 0
        fs.number = 0
        store.flush()
        assert store._shared.synced_offset(0) == 1
