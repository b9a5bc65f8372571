"""A sync that failed in another process: the kernel reports lost pages once, perhaps there."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest

from storage.coordination.shared_state import (
    FILES_CONTRADICT,
    SYNC_FAILED,
    SharedState,
    Word,
)
from storage.errors import StoreBrokenError, StoreContradictionError
from storage.files.fs import FileSystem
from tests.support.samples import TINY, Sample, new_store, open_store, prepared, sync_flush


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
