"""Whether the holders of a write lock make progress, for a process that has waited for some time.

Sixty processes that open a store at once take turns, and the last one waits longer than any of them
holds the write lock. That is no reason to give up. A holder that is stopped, or stuck, is one. The
signs of progress:

* another process holds the write lock than at the last check;
* the shared state says that records were stored, or that a record was begun;
* the shared state is being rebuilt (a recovery), and its process uses the processor.

Nothing is written, and no lock is taken.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from storage.files.bounded import read_first
from storage.format.names import OURS
from storage.platform.processes import pid_with_lock, processor_time

from .shared_state import SHARED_STATE_MAGIC, SHARED_STATE_NAME, Word

_WORD_SIZE: Final = 8
_WORDS: Final = (Word.HOLDER_PID, Word.FROM, Word.LOG_END)
_SHARED_STATE_BYTES: Final = _WORD_SIZE * (max(_WORDS) + 1)


class WriteLockProgress:
    """Compares the observable state of the holders with that of the last check."""

    def __init__(self, root: Path, lock_path: Path, byte: int) -> None:
        self._page_path = root / OURS / SHARED_STATE_NAME
        self._lock_path = lock_path
        self._byte = byte
        self._words: tuple[int, ...] | None = None
        self._holder: tuple[int | None, int | None] | None = None

    def is_made(self) -> bool:
        """Whether anything changed since the last call; False at the first one.

        Takes some 10 ms where the words of the shared state are unchanged: the locks of all
        processes are read then. So the first call looks at the words only, if there are any.
        """
        before, self._words = self._words, self._read_words()
        if self._words is not None and self._words != before:
            looked_before = before is not None or self._holder is not None
            self._holder = None
            return looked_before
        pid = pid_with_lock(self._lock_path, self._byte)
        busy = processor_time(pid) if self._words is None and pid != os.getpid() else None
        before_this, self._holder = self._holder, (pid, busy)
        return before_this is not None and before_this != self._holder

    def _read_words(self) -> tuple[int, ...] | None:
        """The words that change with progress; None while the shared state is not valid."""
        try:
            data = read_first(self._page_path, _SHARED_STATE_BYTES)
        except OSError:
            return None
        if len(data) < _SHARED_STATE_BYTES or _word(data, Word.MAGIC) != SHARED_STATE_MAGIC:
            return None
        return tuple(_word(data, number) for number in _WORDS)


def _word(data: bytes, number: int) -> int:
    return int.from_bytes(data[_WORD_SIZE * number : _WORD_SIZE * (number + 1)], sys.byteorder)
