"""Does each kind of work of a store with the forms that the environment chooses; prints seconds.

The work names what it takes of one unit (a message, a store, a sync); seconds of processor time,
but for waiting.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.ours import new_store, put_column
from benchmarks.workload import TOPIC, columns, messages
from storage.config import FlushDiskType, StoreConfig
from storage.coordination.locks import ProcessLock
from storage.files.fs import FileSystem
from storage.format.encode import prepare
from storage.platform.space import reserve
from storage.store import MessageStore
from storage.tools.snapshot.file_copy import FileCopier

_SYNC = StoreConfig(flush_disk_type=FlushDiskType.SYNC_FLUSH)
_SPARSE = 256 << 20
_WINDOW = 16 << 20


def _processor(work: Callable[[], object], units: int) -> float:
    before = time.process_time()
    work()
    return (time.process_time() - before) / units


def _puts(folder: Path, count: int) -> float:
    sent = [prepare((one,)) for one in messages(count, 1024)]
    with new_store(folder) as store:
        return _processor(lambda: [store.put(one) for one in sent], count)


def _durable_puts(folder: Path, count: int) -> float:
    sent = [prepare((one,)) for one in messages(count, 1024)]
    with new_store(folder, config=_SYNC) as store:
        before = time.perf_counter()
        for one in sent:
            store.put(one)
        return (time.perf_counter() - before) / count


def _batches(folder: Path, count: int) -> float:
    made = columns(count, 1_000, 1024)
    with new_store(folder) as store:

        def put() -> None:
            for one in made:
                put_column(store, one)

        return _processor(put, 1_000 * count)


def _pulls(folder: Path, count: int) -> float:
    with new_store(folder) as store:
        for one in columns(4, 1_000, 1024):
            put_column(store, one)
        view = store.view

        def pull() -> None:
            for number in range(count):
                view.get_message(TOPIC, 0, 32 * (number % 30), 32, tags=None)

        return _processor(pull, count)


def _openings(folder: Path, count: int) -> float:
    with new_store(folder):
        pass

    def opened() -> None:
        for _ in range(count):
            MessageStore.open(folder / "store").close()

    return _processor(opened, count)


def _locks(folder: Path, count: int) -> float:
    lock = ProcessLock(folder / "lock")

    def locked() -> None:
        for _ in range(count):
            with lock.held():
                pass

    return _processor(locked, count)


def _windows(folder: Path, count: int) -> float:
    fd = os.open(folder / "file", os.O_RDWR | os.O_CREAT)
    try:
        os.ftruncate(fd, _WINDOW * count)
        return _processor(lambda: [reserve(fd, n * _WINDOW, _WINDOW) for n in range(count)], count)
    finally:
        os.close(fd)


def _copies(folder: Path, count: int) -> float:
    with (folder / "sparse").open("wb") as file:
        file.write(os.urandom(1 << 20))
        file.truncate(_SPARSE)
    copier = FileCopier(FileSystem(), copies_only=True)

    def copied() -> None:
        for number in range(count):
            copier.part(folder / "sparse", folder / f"copy{number}")

    return _processor(copied, count)


def _wakes(folder: Path, count: int) -> float:
    """Seconds from a put to the message in a process that sleeps; their median."""
    sent = messages(count, 1024)
    with new_store(folder) as store:
        program = [sys.executable, "-m", "benchmarks.programs.waiter"]
        with subprocess.Popen(
            [*program, str(store.root), str(count), "0"], stdout=subprocess.PIPE, text=True
        ) as waiter:
            assert waiter.stdout is not None
            waiter.stdout.readline()  # it is ready
            for message in sent:
                time.sleep(0.004)
                body = time.monotonic_ns().to_bytes(8, "big") + message.body[8:]
                store.put(prepare((message._replace(queue_id=0, body=body),)))
            latencies: list[int] = json.loads(waiter.communicate()[0])["latencies"]
            return float(median(latencies)) / 1e9


WORK: dict[str, tuple[Callable[[Path, int], float], int]] = {
    "a single put of 1 KiB": (_puts, 4_000),
    "a put of 1 KiB in batches of 1,000": (_batches, 40),
    "a put of 1 KiB with SYNC_FLUSH": (_durable_puts, 200),
    "a pull of 32 messages": (_pulls, 2_000),
    "opening and closing a store": (_openings, 30),
    "a lock of one commit of progress": (_locks, 2_000),
    "blocks for 16 MiB of a log file": (_windows, 8),
    "a copy of a file of 256 MiB with 1 MiB of data": (_copies, 2),
    "waking a process that waits": (_wakes, 200),
}
"""What is done, and how many of it."""


if __name__ == "__main__":
    name, folder, share = sys.argv[1:]
    work, most = WORK[name]
    print(work(Path(folder), max(1, int(most * float(share)))), flush=True)
