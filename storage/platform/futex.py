"""Waking threads that sleep on a word of the shared state.

Linux: a futex. Python has no call for it, so the C library's is looked up at the first wake, where
nothing is compiled. Sleeping, and waking in compiled code: storage/native/common/kernel.h.

Any POSIX system: no thread sleeps on a word there (storage/coordination/wakeup.py). One that uses
the form of Linux on the same store sees the word within a second.
"""

from __future__ import annotations

import os
import sys
from mmap import mmap
from typing import Final

from . import form

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


def _wake(mapped: mmap, at: int) -> None:
    _wake_some(mapped, at, _ALL)


def _wake_one(mapped: mmap, at: int) -> int:
    return _wake_some(mapped, at, 1)


def _wake_some(mapped: mmap, at: int, most: int) -> int:
    import ctypes

    low_half = at + 4 if sys.byteorder == "big" else at
    word = ctypes.c_uint32.from_buffer(mapped, low_half)
    word.value += 1
    call = _CALL.get(os.uname().machine)
    if call is None:
        return 0
    woken: int = ctypes.CDLL(None).syscall(
        ctypes.c_long(call), ctypes.byref(word), _WAKE, most, None, None, 0
    )
    return max(0, woken)


def _increment(mapped: mmap, at: int) -> None:
    low_half = at + 4 if sys.byteorder == "big" else at
    word = memoryview(mapped)[low_half : low_half + 4].cast("I")
    word[0] = (word[0] + 1) & 0xFFFFFFFF


def _increment_only(mapped: mmap, at: int) -> int:
    _increment(mapped, at)
    return 0


wake_word: Final = form(_wake, _increment)
"""Increment the word at an offset, and wake all threads that sleep on it."""
wake_one: Final = form(_wake_one, _increment_only)
"""Increment the word at an offset, and wake the thread that has slept on it longest; how many were
woken, 1 or 0."""
