"""Waking who sleeps on a word of the shared page, where nothing is compiled.

Python has no call for it, so the C library's is looked up when the first one is to be woken: such a
process meets one that has compiled forms only if both were installed differently.
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
"""The number of the system call. On other machines who sleeps looks again within a second."""


def wake_word(mapped: mmap, at: int) -> None:
    """Count one further in the word at a place, and wake whoever sleeps on it."""
    import ctypes

    low_half = at + 4 if sys.byteorder == "big" else at
    word = ctypes.c_uint32.from_buffer(mapped, low_half)
    word.value += 1
    call = _CALL.get(os.uname().machine)
    if call is not None:
        ctypes.CDLL(None).syscall(
            ctypes.c_long(call), ctypes.byref(word), _WAKE, _ALL, None, None, 0
        )
