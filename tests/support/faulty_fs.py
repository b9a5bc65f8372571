"""A disk that fails: one call of a run, or that call and all that change files after it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.watched_fs import Instant, WatchedFileSystem

STORES = ("map", "torn map", "word")
NEED_SPACE = ("write", "torn write", "reserve", "create", "rename", "link", "make_dirs", "touch")
SYNCS = ("sync", "sync_dir")


class FaultyFileSystem(WatchedFileSystem):
    """Fails the ``fail_at``-th call that changes files or syncs (stores to maps never fail).

    ``lasting``: from then on every call fails that the errno could be for, until ``heal``.
    """

    def __init__(self, fail_at: int, number: int, *, lasting: bool) -> None:
        super().__init__(self._fail)
        self._fail_at = fail_at
        self._errno = number
        self._lasting = lasting
        self.calls = 0
        self.failed = ""
        """What failed first."""

    def _fail(self, instant: Instant) -> None:
        if instant.kind in STORES:
            return
        self.calls += 1
        again = self.failed and self._lasting and instant.kind in NEED_SPACE + SYNCS
        if self.calls == self._fail_at or again:
            self.failed = self.failed or f"{instant.kind} {Path(instant.what).name}"
            raise OSError(self._errno, os.strerror(self._errno), instant.what)

    def heal(self) -> None:
        self._lasting = False
