"""Ctrl-C while Spark works: no output on standard error, and it is never lost.

Py4J logs each interrupted call through the root logger, with a traceback, and makes Python set up
that logger. PySpark replaces our handler by its own, which asks the JVM to cancel its jobs while
the interrupted call is still in progress. Python prints an interrupt within a finalizer of Py4J's
as ignored, and drops it. So as long as a session runs

* the root logger has a handler, and drops all records of Py4J;
* the handler of Ctrl-C stays as it is: the session ends the JVM by itself. Where that handler
  raises, the JVM is killed first: Py4J and PySpark clean up by calls to it, which have no limit;
* an interrupt that Python ignores is raised in the main thread again;
* it is noted that one came: errors of Py4J's cleanup are ignored then.
"""

from __future__ import annotations

import ctypes
import logging
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

_PAUSE_S: Final = 0.001


class Interrupts:
    """The changes in this process while a session runs."""

    def __init__(self) -> None:
        self.came = False
        """Whether Ctrl-C came since :meth:`begin`."""
        self._stack = ExitStack()

    def begin(self, kill: Callable[[], None] | None = None) -> None:
        """Make the changes; :meth:`end` undoes them. ``kill`` is called where Ctrl-C raises."""
        root = logging.getLogger()
        root.addFilter(_not_of_py4j)
        self._stack.callback(root.removeFilter, _not_of_py4j)
        handler = logging.NullHandler()
        root.addHandler(handler)
        self._stack.callback(root.removeHandler, handler)
        before = sys.unraisablehook

        def hook(unraisable: Any) -> None:
            if isinstance(unraisable.exc_value, KeyboardInterrupt):
                # By another thread: in this one it would be raised before this call has ended.
                threading.Thread(target=_raise_again, args=(hook.__code__,), daemon=True).start()
            else:
                before(unraisable)

        sys.unraisablehook = hook
        self._stack.callback(self._put_back, hook, before)
        self._note_interrupts(kill)

    def end(self) -> None:
        """Undo them. Calling twice is fine."""
        self._stack.close()

    def _note_interrupts(self, kill: Callable[[], None] | None) -> None:
        self.came = False
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            return

        def note(number: int, frame: FrameType | None) -> object:
            self.came = True
            try:
                return handler(number, frame)
            except BaseException:
                if kill is not None:
                    kill()
                raise

        def put_back() -> None:
            if signal.getsignal(signal.SIGINT) is note:  # else the first one has set another
                signal.signal(signal.SIGINT, handler)

        signal.signal(signal.SIGINT, note)
        self._stack.callback(put_back)

    @staticmethod
    def _put_back(own: Any, before: Any) -> None:
        if sys.unraisablehook is own:  # else another hook was set after it
            sys.unraisablehook = before


@contextmanager
def own_handler() -> Iterator[None]:
    """Keep the handler of Ctrl-C as it is, where PySpark puts its own there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        now = getattr(signal.getsignal(signal.SIGINT), "__module__", None) or ""
        if before is not None and now.startswith("pyspark."):
            signal.signal(signal.SIGINT, before)


@contextmanager
def put_off() -> Iterator[None]:
    """Delay Ctrl-C until after the block, which starts something that must be registered to be
    ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    came: list[FrameType | None] = []

    def note(number: int, frame: FrameType | None) -> None:
        del number
        came.append(frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(signal.SIGINT, came[0])


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return record.name != "root" or "py4j" not in record.pathname


def _raise_again(hook: CodeType) -> None:
    main = threading.main_thread().ident or 0
    while _runs(sys._current_frames().get(main), hook):
        time.sleep(_PAUSE_S)
    interrupt = ctypes.py_object(KeyboardInterrupt)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), interrupt)


def _runs(frame: FrameType | None, code: CodeType) -> bool:
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False
