"""Errors that the console outlives: the sentence of each, and its traceback for ``--debug``."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_MOST: Final = 20
"""Different tracebacks that are kept."""
_kept: dict[str, None] | None = None


def judged(error: BaseException) -> tuple[int, str]:
    """The exit code and the sentence that a command has for an error, which is shown."""
    from rmqctl.app import judge

    if _kept is not None and len(_kept) < _MOST:
        import traceback

        _kept["".join(traceback.format_exception(error)).rstrip()] = None
    return judge(error)


def sentence_of(error: BaseException) -> str:
    """The sentence that a command has for an error, which is shown."""
    return judged(error)[1]


@contextmanager
def tracebacks_at_end() -> Iterator[None]:
    """Print the tracebacks of what was shown in the block once it has ended."""
    global _kept
    from rmqctl.output.last_line import LAST_LINE

    _kept = {}
    try:
        yield
    finally:
        kept, _kept = _kept, None
        for text in kept:
            LAST_LINE.print(text, level="error")


@contextmanager
def threads_fail(fail: Callable[[Exception], object]) -> Iterator[None]:
    """Call ``fail`` with an error that ends a thread, instead of printing it on the screen."""
    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if isinstance(args.exc_value, Exception):
            fail(args.exc_value)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before
