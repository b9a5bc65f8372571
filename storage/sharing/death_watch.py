"""Noticing that a process has died: a released lock wakes only those who are blocked on it.

Each station has a thread blocked on the life of the next one in the ring of names, so a death is
noticed within a millisecond or so, and nobody wakes up while nothing happens. Whoever comes by the
lock looks at *all* stations: if the one that should have noticed an earlier death has died as well,
that is found too.

A thread that is blocked in the kernel can not be called back. When somebody joins in between, the
watcher gets a second thread, and the first one ends with what it watches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from .locks import LockFile
from .stations import Stations


class DeathWatch:
    """The threads of one station. ``on_death`` is called by them, without arguments."""

    def __init__(self, stations: Stations, own_name: str, on_death: Callable[[], None]) -> None:
        self._stations = stations
        self._own_name = own_name
        self._on_death = on_death
        self._lock = threading.Lock()  # guards the two fields below
        self._watched: set[str] = set()
        self._closed = False

    def follow(self, living: list[str]) -> None:
        """Watch the next of these names behind our own, unless it is watched already."""
        names = sorted(name for name in living if name != self._own_name)
        if not names:
            return
        following = next((name for name in names if name > self._own_name), names[0])
        with self._lock:
            if self._closed or following in self._watched:
                return
            self._watched.add(following)
        threading.Thread(
            target=self._watch, args=(following,), name="death-watch", daemon=True
        ).start()

    def close(self) -> None:
        """Call nobody any more. Threads that are blocked end with what they watch."""
        with self._lock:
            self._closed = True

    def _watch(self, name: str) -> None:
        try:
            life = LockFile(self._stations.life_path(name), create=False, writable=False)
        except FileNotFoundError:
            pass
        else:
            life.lock(0, exclusive=False)
            life.close()
        with self._lock:
            self._watched.discard(name)
            if self._closed:
                return
        self._on_death()
