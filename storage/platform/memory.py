"""Pages of memory: small ones, given back ones, touched ones; memory that is kept for reuse.

Any POSIX system does not show which pages were touched; what needs it is refused there.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from contextlib import suppress
from functools import cache
from typing import Any, Final

from . import form

_TRIM_THRESHOLD: Final = -1  # M_TRIM_THRESHOLD of malloc.h
_MMAP_THRESHOLD: Final = -3
_RESERVES_NOTHING: Final = getattr(mmap, "MAP_NORESERVE", 0x4000)
_PIECE: Final = 1 << 20


def _map_small_pages(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _RESERVES_NOTHING
    made = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with suppress(OSError):  # a kernel without huge pages
        made.madvise(mmap.MADV_NOHUGEPAGE)
    return made


def _map_private(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def _give_back(memory: mmap.mmap) -> None:
    memory.madvise(mmap.MADV_DONTNEED)


def _zero(memory: mmap.mmap) -> None:
    for at in range(0, len(memory), _PIECE):
        memory[at : at + _PIECE] = bytes(min(_PIECE, len(memory) - at))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _note_touched(address: int, size: int, found: int) -> None:
    where = ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(found)
    if _libc().mincore(*where):
        raise OSError(ctypes.get_errno(), "mincore failed")


def _refuse_touched(_address: int, _size: int, _found: int) -> None:
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def _set_malloc(kept_bytes: int) -> None:
    mallopt = getattr(_libc(), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, kept_bytes)
        mallopt(_TRIM_THRESHOLD, kept_bytes)


def _leave_malloc(_kept_bytes: int) -> None:
    return


map_sparse: Final = form(_map_small_pages, _map_private)
"""Memory of zeros, in small pages if possible, that takes space only where it is touched. Raises
OSError without addresses for it."""
give_back: Final = form(_give_back, _zero)
"""Make such memory zeros again, and give its space back if possible."""
note_touched: Final = form(_note_touched, _refuse_touched)
"""Store at an address (the third argument) a byte for each page of some memory (address and size);
its lowest bit is set if the page was touched. Raises OSError where that is not known."""
keep_freed_memory: Final = form(_set_malloc, _leave_malloc)
"""Keep so many bytes of freed memory in the process for reuse, where the C library can."""
