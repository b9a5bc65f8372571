"""Waking threads that sleep on a word of the shared state, where nothing is compiled.

Python has no call for it, so the C library's is looked up at the first wake. A process without
compiled forms meets one that has them only if the two were installed differently. Sleeping, and
waking in compiled code: storage/native/common/kernel.h.
"""

from __future__ import annotations

import os
import sys
from mmap import mmap
from typing import Final

_WAKE: Final = 1
_ALL: Final = 2**31 - 1
_CALL: Final = {
    "x86_64": 202,
    "aarch64": 98,
    "riscv64": 98,
    "ppc64le": 221,
    "s390x": 238,
    "i686": 240,
    "armv7l": 240,
}
"""The number of the system call. On other machines a sleeper checks again within a second."""


def wake_word(mapped: mmap, at: int) -> None:
    """Increment the word at an offset, and wake all threads that sleep on it."""
    import ctypes

    low_half = at + 4 if sys.byteorder == "big" else at
    word = ctypes.c_uint32.from_buffer(mapped, low_half)
    word.value += 1
    call = _CALL.get(os.uname().machine)
    if call is not None:
        ctypes.CDLL(None).syscall(
            ctypes.c_long(call), ctypes.byref(word), _WAKE, _ALL, None, None, 0
        )
