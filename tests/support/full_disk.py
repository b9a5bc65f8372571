"""Filling a real, small disk: a tmpfs of its own. Runs in ``unshare -rm`` (tests.support.slim)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from storage.config import StoreConfig
from storage.errors import StoreError
from storage.platform import boot, space
from storage.store import MessageStore
from tests.support.crash import Acknowledge, Child, Put, acknowledged_of, begun
from tests.support.every_instant import judge
from tests.support.samples import SMALL, TINY, batch, new_store, open_store, prepared
from tests.support.workloads import SINGLES

BIG = SMALL.with_(
    mapped_file_size_commit_log=4 << 20,
    mapped_file_size_consume_queue=3000 * 20,
    max_hash_slot_num=5_000,
    max_index_num=20_000,
)

UNITS = BIG.with_(
    mapped_file_size_commit_log=4 << 20,
    mapped_file_size_consume_queue=20_000 * 20,
    message_index_enable=False,
)
"""The log has its blocks from the start on, and a queue asks for more every 3,276 units."""


def fill(folder: str, every: int) -> dict[str, object]:
    """Batches until 24 MiB are full, then with so much space left that each part runs out once.

    Each amount of space is tried, or each ``every``-th.
    """
    disk = Path(folder) / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(disk)]
    subprocess.run(mount, check=True, capture_output=True)
    many = [
        Put(batch(f"b{i}", 40 + i % 80, "ABC"[i % 3], (0, 1), size=100 + 37 * i % 900))
        for i in range(1000)
    ]
    said, failures = _run(disk, BIG, many, 22 << 20)
    columns = [Put(batch(f"u{i}", 190, "A", size=10)) for i in range(100)]
    for free in range(0, 256 << 10, every * 24 << 10):
        refused, found = _run(disk, UNITS, columns, (4 << 20) + (150 << 10) + free)
        failures += [f"{free >> 10} KiB free for units: {problem}" for problem in found]
    for free in range(0, 480 << 10, every * 12 << 10):
        refused, found = _run(disk, TINY, SINGLES, free)
        said += refused
        failures += [f"{free >> 10} KiB free: {problem}" for problem in found]
    return {"failures": failures, "refused_to": sorted(set(said))}


def reserve_by_zeros(folder: str) -> int | None:
    """The error of reserving 2 MiB on a disk of 1 MiB by the form for any POSIX system."""
    disk = Path(folder) / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    subprocess.run(mount, check=True, capture_output=True)
    fd = os.open(disk / "file", os.O_RDWR | os.O_CREAT)
    try:
        os.ftruncate(fd, 4 << 20)
        space._write_zeros(fd, 0, 2 << 20)
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)
    return None


def numbers_of_boots() -> list[object]:
    """The number of a boot where shared memory is full, what is left there, and the number after
    there is room again."""
    shared = Path("/dev/shm")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(shared)]
    subprocess.run(mount, check=True, capture_output=True)
    ballast = shared / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
    without_room = boot._of_shared_memory()
    ballast.unlink()
    left = [path.name for path in shared.iterdir()]
    boot._number_of_user.cache_clear()  # as a new process
    found = boot._of_shared_memory()
    return [without_room, left, found and "a number"]


def _run(disk: Path, config: StoreConfig, puts: list[Put], free: int) -> tuple[str, list[str]]:
    """A store with ``free`` bytes to grow, in a process of its own, which SIGBUS would kill.

    Gives what was refused, one letter each, and what is wrong after there is space again.
    """
    root = new_store(disk / "store", config)
    ballast = disk / "ballast"
    info = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, info.f_bavail * info.f_frsize - free))
    reading, writing = os.pipe()
    child = Child(lambda acknowledge: _use(root, config, puts, acknowledge, writing))
    os.close(writing)
    try:
        _, answers = child.wait()
    except AssertionError as error:
        ballast.unlink()
        shutil.rmtree(root)
        return "", [f"{error} (SIGBUS is {int(signal.SIGBUS)})"]
    said = os.read(reading, 16).decode()
    os.close(reading)
    ballast.unlink()
    problems = judge(root, config, acknowledged_of(puts, answers), begun(puts, answers))
    shutil.rmtree(root)
    return said, problems


def _use(
    root: Path, config: StoreConfig, puts: list[Put], acknowledge: Acknowledge, refused: int
) -> None:
    store: MessageStore | None = None
    try:
        store = open_store(root, config)
        for number, put in enumerate(puts):
            acknowledge(number, store.put(prepared(put.samples), whole=put.whole))
    except StoreError:
        os.write(refused, b"o" if store is None else b"p")
    try:
        if store is not None:
            store.close()
        open_store(root, config).close()
    except StoreError:
        os.write(refused, b"c")
