"""What clients still do when their program ends without a call of ``shutdown``."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import weakref
from collections.abc import Callable
from typing import Final

logger = logging.getLogger("rmqctl.client")

_waiting: Final[dict[int, weakref.WeakMethod[Callable[[], None]]]] = {}
"""The methods to call, by the number of their AtExit, in the order in which they came."""


class AtExit:
    """Calls a method when the interpreter ends, while the method's object is still there; those
    that came last first.

    Daemon threads still run by then; other threads have ended, except in a worker of
    multiprocessing. Functions that were registered with ``atexit`` after the first of these are
    called before. A forked child does not call the methods of its parent. A process that a signal
    or ``os._exit`` ends calls none.
    """

    def __init__(self, method: Callable[[], None]) -> None:
        self._key = id(self)
        _waiting[self._key] = weakref.WeakMethod(method, self._forget)
        _register()

    def cancel(self) -> None:
        """Do not call it any more."""
        _waiting.pop(self._key, None)

    def _forget(self, _: object) -> None:
        _waiting.pop(self._key, None)


_registered_in = 0
"""The process in which the calls are registered; 0: none."""


def _register() -> None:
    global _registered_in
    pid = os.getpid()
    if _registered_in == pid:
        return
    if not _registered_in:
        atexit.register(_call_all)
    _registered_in = pid
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        # A process of multiprocessing ends by os._exit, after these.
        from multiprocessing.util import Finalize

        Finalize(None, _call_all, exitpriority=0)


def _call_all() -> None:
    while _waiting:
        for key in reversed(list(_waiting)):
            reference = _waiting.pop(key, None)
            method = None if reference is None else reference()
            try:
                if method is not None:
                    method()
            except Exception:  # of one client: the others are called all the same
                logger.exception("what a client does when its program ends has failed")


os.register_at_fork(after_in_child=_waiting.clear)
