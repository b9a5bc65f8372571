"""Pages of memory: small ones, given back ones, touched ones; memory that is kept for reuse."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from functools import cache
from typing import Any, Final

_TRIM_THRESHOLD: Final = -1  # M_TRIM_THRESHOLD of malloc.h
_MMAP_THRESHOLD: Final = -3
_RESERVES_NOTHING: Final = getattr(mmap, "MAP_NORESERVE", 0x4000)


def map_sparse(size: int) -> mmap.mmap:
    """Memory of zeros that takes space only where it is touched, in small pages if possible.
    Raises OSError without addresses for it."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _RESERVES_NOTHING
    made = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with suppress(OSError):  # a kernel without huge pages
        made.madvise(mmap.MADV_NOHUGEPAGE)
    return made


def give_back(memory: mmap.mmap) -> None:
    """Give the space of such memory back; it is zeros again."""
    memory.madvise(mmap.MADV_DONTNEED)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def note_touched(address: int, size: int, found: int) -> None:
    """Store at the address ``found`` a byte for each page of some memory; its lowest bit is set if
    the page was touched. Raises OSError."""
    where = ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(found)
    if _libc().mincore(*where):
        raise OSError(ctypes.get_errno(), "mincore failed")


def keep_freed_memory(kept_bytes: int) -> None:
    """Keep so many bytes of freed memory in the process for reuse, where the C library can."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, kept_bytes)
        mallopt(_TRIM_THRESHOLD, kept_bytes)
