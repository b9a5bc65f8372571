"""Noticing that a process has died: a released lock wakes only threads that are blocked on it.

Each process entry has a thread that is blocked on the liveness lock of the next entry in the ring
of names. A death is noticed within a millisecond or so, and no process wakes up while nothing
happens. The thread that gets the lock checks *all* process entries: if the process that should have
noticed an earlier death has died as well, that death is found too.

A thread that is blocked in the kernel cannot be called back. When an entry joins in between, the
watcher gets a second thread, and the first one ends with the entry that it watches. Until then it
serves all process entries of its process that come to watch the same entry. So a process that opens
and closes a thousand process entries has no more such threads than there are other live entries.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .locks import LockFile
from .processes import ProcessEntries

logger = logging.getLogger("rmqctl.storage")

RETRY_S: Final = 1.0
"""Seconds between two attempts to watch what cannot be watched now, as without descriptors."""

_lock = threading.Condition()  # guards the table, and ``_closed`` of all watches
_watchers: Final[dict[Path, list[FailureDetector]]] = {}  # by liveness file, a blocked thread each


class FailureDetector:
    """The watch of one process entry. ``on_death`` is called by a thread of its own, without
    arguments; its exceptions are logged."""

    def __init__(
        self, processes: ProcessEntries, own_name: str, on_death: Callable[[], None]
    ) -> None:
        self._processes = processes
        self._own_name = own_name
        self._on_death = on_death
        self._closed = False

    def follow(self, living: list[str]) -> None:
        """Watch the next of these names after our own, unless it is watched already."""
        names = sorted(name for name in living if name != self._own_name)
        if not names:
            return
        following = next((name for name in names if name > self._own_name), names[0])
        watched = self._processes.life_path(following)
        with _lock:
            if self._closed:
                return
            watchers = _watchers.get(watched)
            if watchers is not None:
                if self not in watchers:
                    watchers.append(self)
                return
            thread = threading.Thread(
                target=_wait_for_death, args=(watched,), name="failure-detector", daemon=True
            )
            try:
                _watchers[watched] = [self]  # before the start: the thread takes it out
                thread.start()
            except BaseException:
                _watchers.pop(watched, None)  # a thread that runs all the same finds none
                raise

    def close(self) -> None:
        """Make no more calls."""
        with _lock:
            self._closed = True
            for watchers in _watchers.values():
                if self in watchers:
                    watchers.remove(self)
            _lock.notify_all()

    def notice(self) -> None:
        """Report a death."""
        try:
            self._on_death()
        except Exception:
            logger.exception("a death could not be reported: process=%s", self._own_name)


def _wait_for_death(watched: Path) -> None:
    try:
        failure = _wait_for_end(watched)
        if failure is not None:
            logger.warning("a process cannot be watched yet: path=%s: %s", watched, failure)
        while failure is not None:
            with _lock:
                if _lock.wait_for(lambda: not _watchers.get(watched), RETRY_S):  # all have closed
                    break
            failure = _wait_for_end(watched)
    finally:
        with _lock:
            watchers = _watchers.pop(watched, [])
    for watch in watchers:
        watch.notice()


def _wait_for_end(path: Path) -> OSError | None:
    """Wait until the liveness lock is free; gives the error that prevents it, such as too few
    descriptors."""
    try:
        life = LockFile(path, create=False, writable=False)
        try:
            life.lock(0, exclusive=False)
        finally:
            life.close()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        return error
    return None


def _in_child() -> None:
    """A forked child has none of the threads, of which one may hold the lock at the fork."""
    global _lock
    _lock = threading.Condition()
    _watchers.clear()


os.register_at_fork(after_in_child=_in_child)
