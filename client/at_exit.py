"""What a client still does when its program ends without a call of ``shutdown``."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.util import Finalize


class AtExit:
    """Calls a method when the interpreter ends, while the method's object is still there.

    Threads that are no daemons have ended by then, daemons still run. Functions that were
    registered with ``atexit`` later are called before. A forked child does not call the method. A
    process that a signal or ``os._exit`` ends does not either.
    """

    def __init__(self, method: Callable[[], None]) -> None:
        self._method = weakref.WeakMethod(method)
        self._pid = os.getpid()
        self._in_worker: Finalize | None = None
        atexit.register(self._call)
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            # A process of multiprocessing ends by os._exit, after these.
            from multiprocessing.util import Finalize

            self._in_worker = Finalize(None, self._call, exitpriority=0)

    def cancel(self) -> None:
        """Do not call it any more."""
        atexit.unregister(self._call)
        if self._in_worker is not None:
            self._in_worker.cancel()

    def _call(self) -> None:
        method = self._method()
        if method is not None and os.getpid() == self._pid:
            method()
