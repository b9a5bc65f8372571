"""What a process that moves many messages wants of the C library."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_TRIM_THRESHOLD: Final = -1  # M_TRIM_THRESHOLD of malloc.h
_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 32 << 20


def keep_freed_memory() -> None:
    """Have up to 32 MiB of freed memory kept for what comes next.

    glibc gives arrays of a batch back to the system at once, and the next batch faults every page
    in again: a fifth of the time of ``produce``. Other C libraries are left as they are.
    """
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Within the block Python does not look for objects that refer to each other in a circle.

    For work that makes hundreds of thousands of small values and no circles: the search takes a
    third of its time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
