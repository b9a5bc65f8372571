"""Runs that redrive dead letters: ``<store>/rmqctl/redrives/RUN.jsonl``.

The first line holds the task of the run (which dead letters, to where, what is changed), each
further one is a receipt, written when a message is stored. All are sealed (checksummed_json); a
line that a death left torn is skipped, and the next one begins after it. Receipts are not synced
one by one: those that a power loss takes are found in the log, as each redriven message names its
run.

The process that carries out a run holds ``redrives/lock``: one a store at a time.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from storage.coordination.locks import LockFile
from storage.errors import StoreNotWritableError
from storage.files.bounded import MAX_OWN_SIZE, read_bounded, read_last
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import (
    MAX_INT,
    MAX_TIME,
    Shape,
    fail,
    flag,
    items,
    maybe,
    members,
    rows,
    table,
    text,
    whole,
)

from .checksummed_json import seal, unseal

REDRIVES_FOLDER: Final = "redrives"
LOCK: Final = "lock"
SETTLED: Final = {"settled": True}
"""The last line of an attempt that was not interrupted: all that it sent is marked as handled."""


def _base64(value: Any, place: str) -> None:
    text(value, place)
    try:
        b64decode(value)
    except ValueError:
        fail(value, place, "a body in base64")


_BODY: Final = maybe(_base64)
_PROPERTIES: Final = table(text)
_PLACES: Final = rows(items(whole(0, MAX_INT), whole(0)))
_CONTENT: Final = members(
    {"body": _BODY, "properties": _PROPERTIES, "flag": whole(-MAX_INT - 1, MAX_INT)}
)
TASK: Final = members(
    {
        "run": text,
        "group": text,
        "target": text,
        "max_redrives": whole(0),
        "log_offset": whole(0),
        "places": _PLACES,
        "rewriting": members(
            {
                "properties": _PROPERTIES,
                "body": _BODY,
                "pipe": maybe(text),
                "edited": maybe(_CONTENT),
            }
        ),
    },
    {"handled": _PLACES},
)
"""The first line of a run: rmqctl.admin.dead_letters.redrive_run.Task."""
_SENT: Final = members(
    {
        "queue_id": whole(0, MAX_INT),
        "queue_offset": whole(0),
        "msg_id": text,
        "target": maybe(text),
        "new_msg_id": maybe(text),
        "new_queue_id": maybe(whole(0, MAX_INT)),
        "new_queue_offset": maybe(whole(0)),
        "redriven_timestamp": maybe(whole(0, MAX_TIME)),
        "applied": flag,
    }
)


def _receipt_shape(value: Any, place: str) -> None:
    if "settled" in value:
        flag(value["settled"], "settled")
    else:
        _SENT(value, place)


RECEIPT: Final[Shape] = _receipt_shape
"""Each further line: what was sent, or that an attempt began or ended."""
_SUFFIX: Final = ".jsonl"
_FULL_AT: Final = MAX_OWN_SIZE - (1 << 20)
"""Bytes of a file from which on it takes no receipts: some 450,000. What is left is more than the
longest of them and the last lines of attempts take."""
_SETTLED_LINE: Final = b"\n" + seal(SETTLED) + b"\n"


class RedriveRuns:
    """The runs of one store."""

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self.path = root / OURS / REDRIVES_FOLDER
        self._fs = fs or FileSystem()

    def names(self) -> list[str]:
        """Name all runs, oldest first: names begin with the time."""
        return sorted(path.stem for path in self.path.glob(f"*{_SUFFIX}"))

    def read(self, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """Give the task of a run, and its receipts; None if there is none of that name."""
        if run not in self.names():
            return None
        try:
            lines = read_bounded(self._file(run)).split(b"\n")
        except FileNotFoundError:
            return None
        task = unseal(lines[0], TASK)
        if task is None:
            return None
        return task, [entry for line in lines[1:] if (entry := unseal(line, RECEIPT)) is not None]

    def is_settled(self, run: str) -> bool:
        """Tell whether the last attempt at a run ended by itself; reads only its end."""
        try:
            return read_last(self._file(run), len(_SETTLED_LINE)) == _SETTLED_LINE
        except FileNotFoundError:
            return False  # reading the run gives the reason

    def has_room(self, task: dict[str, Any]) -> bool:
        """Whether the file of a run with this task has room for receipts, some 200,000."""
        return len(seal(task)) <= _FULL_AT // 2

    def begin(self, run: str, task: dict[str, Any]) -> None:
        """Note the task of a run; on the device when this returns. StoreNotWritableError."""
        path = self._file(run)
        try:
            self._fs.make_dirs(self.path)
            fd = self._fs.open(path, writable=True, create=True)
            try:
                self._fs.write(fd, seal(task) + b"\n", 0)
                self._fs.sync(fd)
            finally:
                self._fs.close(fd)
            self._fs.sync_dir(self.path)
        except OSError as error:
            raise StoreNotWritableError(path, error.strerror or str(error)) from error

    @contextmanager
    def receipts(self, run: str) -> Iterator[Receipts]:
        """Write receipts of a run; they are on the device at the end of the block.

        Raises StoreNotWritableError.
        """
        receipts = Receipts(self._file(run), self._fs)
        try:
            yield receipts
        finally:
            receipts.close()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Hold the lock of all runs; False if another process, or thread, has it.

        Raises StoreNotWritableError.
        """
        try:
            self._fs.make_dirs(self.path)
            lock = LockFile(self.path / LOCK)
        except OSError as error:
            raise StoreNotWritableError(self.path, error.strerror or str(error)) from error
        try:
            yield lock.try_lock(0)
        finally:
            lock.close()

    def is_any_running(self) -> bool:
        """Tell whether a process carries out a run of this store now; changes nothing."""
        try:
            lock = LockFile(self.path / LOCK, create=False, writable=False)
        except FileNotFoundError:
            return False
        try:
            return lock.holder(0) is not None
        finally:
            lock.close()

    def path_of(self, run: str) -> Path:
        """Name the file of a run."""
        return self._file(run)

    def _file(self, run: str) -> Path:
        return self.path / f"{run}{_SUFFIX}"


class Receipts:
    """An open file of receipts, at its end. Not safe for threads."""

    def __init__(self, path: Path, fs: FileSystem) -> None:
        self._path = path
        self._fs = fs
        with self._writing():
            self._fd = fs.open(path, writable=True)
            self._end = fs.size(self._fd)
            if self._end and fs.read(self._fd, 1, self._end - 1) != b"\n":
                fs.write(self._fd, b"\n", self._end)
                self._end += 1

    def begin(self) -> None:
        """Note that an attempt begins, on the device: from here on the run is not settled.

        Raises StoreNotWritableError.
        """
        self.write({"settled": False})
        with self._writing():
            self._fs.sync(self._fd)

    @property
    def is_full(self) -> bool:
        """Whether the file could not be read any more with further receipts."""
        return self._end >= _FULL_AT

    def write(self, receipt: dict[str, Any]) -> None:
        """Add one; a kill does not lose it. Raises StoreNotWritableError."""
        line = seal(receipt) + b"\n"
        with self._writing():
            self._fs.write(self._fd, line, self._end)
        self._end += len(line)

    def close(self) -> None:
        """Sync and close. Raises StoreNotWritableError."""
        try:
            with self._writing():
                self._fs.sync(self._fd)
        finally:
            self._fs.close(self._fd)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreNotWritableError(self._path, error.strerror or str(error)) from error
