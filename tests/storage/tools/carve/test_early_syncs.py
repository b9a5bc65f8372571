"""A new store is synced while it is filled, not only at the end."""

import errno
import functools
import threading
from pathlib import Path

import numpy as np
import pytest

from storage.coordination.shared_state import Word
from storage.errors import StoreBrokenError
from storage.files.fs import FileSystem
from storage.format.prepared_exact import ExactColumns
from storage.format.record import encode_record
from storage.tools.carve import new_store as module
from storage.tools.carve.columns import ExactEncoder
from storage.tools.carve.new_store import ExactWriter
from tests.support.consumers import eventually
from tests.support.samples import HOST, START_MS, TINY, new_store

BATCHES = 3
BATCH = 4


def record(number: int) -> bytes:
    return encode_record(
        topic="old",
        queue_id=0,
        body=b"n%d" % number,
        properties=b"",
        queue_offset=0,
        physical_offset=0,
        store_timestamp=START_MS + number,
        born_timestamp=START_MS,
        born_host=HOST,
        store_host=HOST,
    )


def batches() -> list[ExactColumns]:
    encoder = ExactEncoder([("old", 0)])
    numbers = np.zeros(BATCH, np.int64)
    return [
        encoder.columns([record(BATCH * batch + row) for row in range(BATCH)], numbers, None)
        for batch in range(BATCHES)
    ]


class Counted(FileSystem):
    """Counts the syncs of files in other threads than the main one."""

    def __init__(self) -> None:
        self.fails = False
        self.beside = 0

    def sync(self, fd: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.beside += 1
            if self.fails:
                raise OSError(errno.EIO, "no more room in the drawer")
        super().sync(fd)


def test_what_is_much_is_synced_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SYNC_BYTES", 1)
    root, fs = new_store(tmp_path / "s", TINY), Counted()
    with ExactWriter(root, TINY, {}, fs) as writer:
        words = writer._session.shared.words
        for batch in batches():
            writer.put(batch)
            eventually(lambda: words[Word.FLUSHED_TO] == words[Word.LOG_END], "it is not synced")
    assert fs.beside == BATCHES


def test_what_is_little_is_synced_at_the_end(tmp_path: Path) -> None:
    root, fs = new_store(tmp_path / "s", TINY), Counted()
    with ExactWriter(root, TINY, {}, fs) as writer:
        for batch in batches():
            writer.put(batch)
        assert writer._session.shared.words[Word.FLUSHED_TO] == 0
    assert fs.beside == 0


@pytest.mark.parametrize("puts", [1, 2])
def test_a_sync_that_failed_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, puts: int
) -> None:
    monkeypatch.setattr(module, "_SYNC_BYTES", 1)
    root, fs = new_store(tmp_path / "s", TINY), Counted()
    fs.fails = True

    def fill() -> None:
        with ExactWriter(root, TINY, {}, fs) as writer:
            for batch in batches()[:puts]:
                writer.put(batch)
                eventually(lambda: writer._sync_error, "no sync has failed")

    with pytest.raises(StoreBrokenError, match=r"the device did not take .*drawer"):
        fill()
    assert fs.beside == 1


class NoDescriptors(FileSystem):
    """Opens no file in other threads than the main one, as where all descriptors are in use."""

    def __init__(self) -> None:
        self.refused = 0

    def has_refused(self, count: int) -> bool:
        return self.refused >= count

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if threading.current_thread() is not threading.main_thread():
            self.refused += 1
            raise OSError(errno.EMFILE, "too many open files")
        return super().open(path, writable=writable, create=create)


def test_what_could_not_be_opened_meanwhile_is_synced_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SYNC_BYTES", 1)
    root, fs = new_store(tmp_path / "s", TINY), NoDescriptors()
    with ExactWriter(root, TINY, {}, fs) as writer:
        for number, batch in enumerate(batches()):
            writer.put(batch)
            eventually(functools.partial(fs.has_refused, number + 1), "nothing was opened")
    assert not (root / "abort").exists()
