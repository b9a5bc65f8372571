"""Whether a process stands in the line of a write lock (write_lock_line.py)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from storage.platform import futex

PATIENCE_S = 30
FUTEX_CALL = futex._CALL.get(os.uname().machine)


def until(found: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline, f"{PATIENCE_S} s later: not {what}"


def stands_in_line(pid: int, tid: int | None) -> bool:
    """Whether a thread sleeps on a word of a shared state."""
    try:
        call = Path(f"/proc/{pid}/task/{tid}/syscall").read_text().split()
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return False
    if call[0] != str(FUTEX_CALL):
        return False
    ranges = [line.split()[0].split("-") for line in maps if line.endswith("/rmqctl/shared")]
    return any(int(begin, 16) <= int(call[1], 16) < int(end, 16) for begin, end in ranges)
