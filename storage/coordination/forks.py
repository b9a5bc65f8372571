"""Work of threads that a fork waits for.

A forked child has only the thread that forked. What another thread did then stays half done there:
a lock is held for ever, the import of a module too, and a new descriptor has no owner.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, Self, TypeVar, overload

PATIENCE_S: Final = 5.0
"""How long a fork waits for other threads. Then it goes on: they may be stopped."""

_Part = TypeVar("_Part")


class Section:
    """Work of one thread at a time: a fork waits until it ends, and none begins during a fork.

    Hold ``lock`` meanwhile, in a ``with`` (it is another one in a child). It is reentrant, also for
    the thread that forks. For modules and classes: sections are never forgotten.
    """

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _sections.append(self)


class made_once(Generic[_Part]):
    """A property that is made at its first use, by one thread, and then kept in the object's dict.

    As ``functools.cached_property``, whose lock of Python 3.11 stays held in a forked child, and
    which makes a value twice from Python 3.12 on.
    """

    def __init__(self, make: Callable[[Any], _Part]) -> None:
        self._make = make
        self._name = make.__name__
        self._section = Section()
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _Part: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | _Part:
        if instance is None:
            return self
        parts = vars(instance)
        with self._section.lock:
            if self._name not in parts:
                parts[self._name] = self._make(instance)
            part: _Part = parts[self._name]
            return part


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.held: list[threading.RLock] = []
        """What the thread holds over a fork, and what it is about to hold."""


_sections: Final[list[Section]] = []
_own: Final = _OfThread()


def _hold() -> None:
    """Hold all sections, or none if that takes too long."""
    ends = time.monotonic() + PATIENCE_S
    held = _own.held
    sections = list(_sections)
    while True:
        for section in sections:
            # Only the first is waited for: a thread that holds another may need one of ours.
            wait_s = 0.0 if held else max(0.0, ends - time.monotonic())
            held.append(section.lock)  # before it is held: Ctrl-C may come in between
            if not section.lock.acquire(timeout=wait_s):
                held.pop()
                break
        else:
            return
        _let_go()
        if time.monotonic() >= ends:
            return
        sections.remove(section)
        sections.insert(0, section)


def _let_go() -> None:
    held = _own.held
    while held:
        with suppress(RuntimeError):  # Ctrl-C came before it was held
            held[-1].release()
        held.pop()


def _after_fork() -> None:
    try:
        _let_go()
    finally:
        _let_go()  # the rest, if Ctrl-C came in between


def _in_child() -> None:
    _own.held.clear()
    for section in _sections:
        section.lock = threading.RLock()


os.register_at_fork(before=_hold, after_in_parent=_after_fork, after_in_child=_in_child)
