"""The system's own time for the bytes: no store can be faster with the same system calls."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from storage.format.encode import prepare

from .run import Run
from .workload import messages


@contextmanager
def _file(run: Run, size: int) -> Iterator[int]:
    """A new file that has its blocks."""
    with tempfile.TemporaryFile(dir=run.directory) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        yield file.fileno()


def pwrite_limit(run: Run, batches: int, batch: int, body: int) -> float:
    """Seconds to write prepared chunks of records in sequence, and nothing else."""
    chunk = bytes(prepare(messages(batch, body)).buffer)
    with _file(run, (batches + 1) * len(chunk)) as fd:
        os.pwrite(fd, chunk, 0)
        start = perf_counter()
        for number in range(1, batches + 1):
            os.pwrite(fd, chunk, number * len(chunk))
        return perf_counter() - start


def durable_limit(run: Run, count: int, body: int) -> list[float]:
    """Seconds of each ``pwrite`` of a prepared record followed by an ``fdatasync``."""
    record = bytes(prepare(messages(1, body)).buffer)
    times = []
    with _file(run, (count + 1) * len(record)) as fd:
        for number in range(count + 1):
            start = perf_counter()
            os.pwrite(fd, record, number * len(record))
            os.fdatasync(fd)
            times.append(perf_counter() - start)
    return times[1:]


def read_limit(run: Run, size: int, at_once: int) -> float:
    """Seconds to copy a file of that size out of the page cache, so many bytes a call."""
    block = bytes(range(256)) * 4096
    with tempfile.TemporaryFile(dir=run.directory) as file:
        for _ in range(size // len(block)):
            file.write(block)
        file.flush()
        fd, buffer = file.fileno(), bytearray(at_once)
        os.preadv(fd, [buffer], 0)
        start = perf_counter()
        for position in range(0, size, at_once):
            os.preadv(fd, [buffer], position)
        return perf_counter() - start
