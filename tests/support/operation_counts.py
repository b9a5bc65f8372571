"""What one operation costs, in things that can be counted and do not depend on the machine.

Calls of Python functions, calls of C functions, calls of the system among them (functions of posix,
fcntl and select, and flushes of maps), bytes stored in files, and the most bytes that were
allocated at once. Counted in the thread that does the operation; services sleep meanwhile.

``python -m tests.support.operation_counts`` prints the table of ``tests/checks/
operation_counts.toml`` as it is now; ``--write`` writes it.
"""

from __future__ import annotations

import gc
import mmap
import sys
import tempfile
import tomllib
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import numpy  # noqa: F401 - the pure forms use it once it is loaded

from benchmarks.ours import put_column
from benchmarks.workload import TOPIC, columns, messages
from storage.config import StoreConfig
from storage.files.fs import FileSystem
from storage.format.encode import prepare
from storage.store import MessageStore, now_ms
from tests.support.compiled import native

TABLE: Final = Path(__file__).parent.parent / "checks" / "operation_counts.toml"
PYTHON: Final = (3, 11)
"""The version that the table was written with; others call in other ways."""
_SYSTEM: Final = frozenset({"posix", "fcntl", "select", "_socket"})
_BODY: Final = 1024
_LATER: Final = 3_600_000
CONFIG: Final = StoreConfig().with_(
    mapped_file_size_commit_log=64 << 20,
    flush_interval_commit_log_ms=_LATER,
)
"""Files that no measurement fills, and services that sleep through it."""


class Counts(NamedTuple):
    """Of one operation, on the average; bytes are whole."""

    python_calls: float
    c_calls: float
    system_calls: float
    stored_bytes: float
    peak_bytes: float


class _CountingMap(mmap.mmap):
    stored = 0

    def __setitem__(self, index: Any, value: Any) -> None:
        _CountingMap.stored += len(value) if isinstance(index, slice) else 1
        super().__setitem__(index, value)


class _CountingFiles(FileSystem):
    def map(self, fd: int, length: int, *, writable: bool) -> mmap.mmap:
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        return _CountingMap(fd, length, access=access)

    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        _CountingMap.stored += len(data)
        super().write(fd, data, offset)


def counts_of(operation: Callable[[], object], times: int) -> Counts:
    """Do an operation ``times`` times and count; once before, so that everything is loaded."""
    operation()
    python = c = system = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal python, c, system
        del frame
        if event == "call":
            python += 1
        elif event == "c_call":
            c += 1
            owner = getattr(argument, "__self__", None)
            if argument.__module__ in _SYSTEM or (
                isinstance(owner, mmap.mmap) and argument.__name__ == "flush"
            ):
                system += 1

    _CountingMap.stored = 0
    sys.setprofile(note)
    try:
        for _ in range(times):
            operation()
    finally:
        sys.setprofile(None)
    stored = _CountingMap.stored
    return Counts(
        round(python / times, 1),
        round((c - 1) / times, 1),  # one of them ends the counting
        round(system / times, 2),
        round(stored / times),
        _peak(operation),
    )


def _peak(operation: Callable[[], object]) -> int:
    """The most bytes allocated at once while an operation runs; the median of five."""
    gc.disable()
    tracemalloc.start()
    try:
        peaks = []
        for _ in range(5):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            operation()
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
        gc.enable()
    return sorted(peaks)[2]


@contextmanager
def _store(
    root: Path, *, exclusive: bool, clock: Callable[[], int] = now_ms
) -> Iterator[MessageStore]:
    MessageStore.create(root, CONFIG)
    with MessageStore.open(
        root, CONFIG, clock=clock, fs=_CountingFiles(), exclusive=exclusive
    ) as store:
        yield store


def _in_pure_forms(operation: Callable[[Path], Counts]) -> Callable[[Path], Counts]:
    """Whether there are compiled ones is the machine's affair."""

    def counted(root: Path) -> Counts:
        compiled, native.compiled = native.compiled, None
        try:
            return operation(root)
        finally:
            native.compiled = compiled

    return counted


def _single(root: Path, *, exclusive: bool) -> Counts:
    sent = messages(64, _BODY)
    turn = 0
    with _store(root, exclusive=exclusive) as store:

        def put() -> None:
            nonlocal turn
            turn += 1
            store.put_message(sent[turn % len(sent)])

        return counts_of(put, 4_096)  # some rounds of keys that wait for the index


def _batch(root: Path, size: int) -> Counts:
    sent = messages(size, _BODY)
    with _store(root, exclusive=False) as store:
        return counts_of(lambda: store.put(prepare(sent)), 20)


def _column(root: Path, size: int) -> Counts:
    (column,) = columns(1, size, _BODY)
    with _store(root, exclusive=False) as store:
        return counts_of(lambda: put_column(store, column), 20)


def _reading(root: Path, read: Callable[[MessageStore], object]) -> Counts:
    now = now_ms()  # the batches are 10 ms apart on any machine: the steps of a search by time
    with _store(root, exclusive=False, clock=lambda: now) as store:
        for _ in range(20):
            now += 10
            store.put(prepare(messages(200, _BODY)))
        store.flush()
        return counts_of(lambda: read(store), 200)


def _pull(store: MessageStore) -> int:
    found = store.view.get_message(TOPIC, 1, 100, 32, tags=None)
    assert len(found.messages) == 32
    return sum(len(message.body) for message in found.messages)


def _by_key(store: MessageStore) -> object:
    found = store.view.query_message(TOPIC, "order-77", 1, 0, now_ms() + _LATER)
    assert found.messages
    return found


def _by_time(store: MessageStore) -> object:
    when = store.view.store_timestamp(TOPIC, 2, 500)
    assert when is not None
    return store.view.offset_in_queue_by_time(TOPIC, 2, when)


_OPERATIONS: Final[dict[str, Callable[[Path], Counts]]] = {
    "single append, exclusive": lambda root: _single(root, exclusive=True),
    "single append, shared": lambda root: _single(root, exclusive=False),
    "batch of 10": lambda root: _batch(root, 10),
    "batch of 100": lambda root: _batch(root, 100),
    "column of 1000": lambda root: _column(root, 1_000),
    "pull of 32": lambda root: _reading(root, _pull),
    "query by key": lambda root: _reading(root, _by_key),
    "offset by time": lambda root: _reading(root, _by_time),
}
OPERATIONS: Final = {name: _in_pure_forms(count) for name, count in _OPERATIONS.items()}


def recorded() -> dict[str, Counts]:
    """What the operations cost when that was last written down."""
    return {name: Counts(**counts) for name, counts in tomllib.loads(TABLE.read_text()).items()}


def _main() -> None:
    lines = [
        "# What one operation costs; see tests/support/operation_counts.py, which writes this."
    ]
    for name, operation in OPERATIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            counts = operation(Path(folder) / "store")
        lines += ["", f'["{name}"]', *(f"{k} = {v}" for k, v in counts._asdict().items())]
    text = "\n".join(lines) + "\n"
    if "--write" in sys.argv[1:]:
        if sys.version_info[:2] != PYTHON:
            sys.exit(f"the table is of Python {'.'.join(map(str, PYTHON))}")
        TABLE.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    _main()
