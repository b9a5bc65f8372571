"""Which boot of the machine this is: what was not synced before another one may be lost.

Linux: the kernel's id. Any POSIX system: a random number in shared memory (``shm_open``), which
lasts until the machine is booted again. Each user has one: what another user's process has
written counts as of another boot, which costs time and loses nothing.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from . import form

_WORD: Final = 8
_LOOKS: Final = 200
_PAUSE: Final = 1e-3


def _of_kernel() -> tuple[int, int] | None:
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        raw = bytes.fromhex(text)
    except (OSError, ValueError):
        return None
    return int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True)


def _of_shared_memory() -> tuple[int, int] | None:
    number = _number_of_user(os.geteuid())
    return None if number is None else (number, os.geteuid())


@lru_cache(maxsize=2)
def _number_of_user(uid: int) -> int | None:
    try:
        return _number(f"/rmqctl-boot-{uid}")
    except (ImportError, OSError, ValueError):
        return None


def _number(name: str) -> int | None:
    """The number in an object of shared memory, which is made if there is none. None if another
    user has made it, or its maker has not written it. Raises OSError, ImportError."""
    # Of multiprocessing, which removes such objects at its end.
    from _posixshmem import shm_open, shm_unlink  # type: ignore[import-not-found]

    with suppress(FileExistsError):
        fd = shm_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode=0o600)
        try:
            _give_page(fd)
        except OSError:
            os.close(fd)
            shm_unlink(name)
            raise
        try:
            with mmap.mmap(fd, mmap.PAGESIZE) as memory:
                memory[:_WORD] = os.urandom(_WORD - 1) + b"\x01"  # never 0
        finally:
            os.close(fd)
    fd = shm_open(name, os.O_RDONLY, mode=0o600)
    try:
        for _ in range(_LOOKS):
            info = os.fstat(fd)
            if info.st_uid != os.geteuid() or info.st_mode & 0o077:
                return None
            if info.st_size >= mmap.PAGESIZE:
                with mmap.mmap(fd, mmap.PAGESIZE, access=mmap.ACCESS_READ) as memory:
                    number = int.from_bytes(memory[:_WORD], "little", signed=True)
                if number:
                    return number
            time.sleep(_PAUSE)  # it is just being made
    finally:
        os.close(fd)
    return None


def _give_page(fd: int) -> None:
    """Give shared memory its length, and memory: a store to what has none is a signal, not an
    error. Systems that do not keep it as a file have no such call, and need none. Raises OSError
    (ENOSPC) where it is full."""
    try:
        os.posix_fallocate(fd, 0, mmap.PAGESIZE)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM):
            raise
        os.ftruncate(fd, mmap.PAGESIZE)


boot_id: Final = form(_of_kernel, _of_shared_memory)
"""The id of this boot as two signed words, or None where there is none."""
