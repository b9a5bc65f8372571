"""Log records of the libraries, shown with ``--verbose`` or ``--debug``; warnings, shown unless
``--quiet``."""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import logging

    from .context import Cli

_handlers: "Final[list[logging.Handler]]" = []
"""The handlers that the last call added."""


def show_logs(cli: "Cli") -> None:
    """Show warnings on stderr with ``--verbose``; all records and tracebacks with ``--debug``.

    Commands with threads call this before they start them: without a handler Python itself would
    print warnings. The last call counts.
    """
    import logging

    from .log_records import LineHandler

    debug = cli.flag("debug")
    logger = logging.getLogger("rmqctl")
    while _handlers:
        logger.removeHandler(_handlers.pop())
    handler: logging.Handler = logging.NullHandler()
    if cli.flag("verbose") or debug:
        handler = LineHandler(tracebacks=debug)
        logger.setLevel(logging.INFO if debug else logging.WARNING)
    _handlers.append(handler)
    logger.addHandler(handler)


def show_warnings(cli: "Cli") -> None:
    """Print warnings of Python's ``warnings`` as a sentence, without a source location."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        from storage.errors import IncompleteStoreWarning

        tell = cli.tell_of_damage if isinstance(message, IncompleteStoreWarning) else cli.warn
        tell(str(message))

    warnings.showwarning = show


def take_stray_messages() -> Callable[[], None]:
    """Have what the interpreter itself prints on stderr printed as JSON, too; gives what ends it.

    Those are log records without a handler, and exceptions that end a thread or that Python
    ignores.
    """
    import logging
    import sys
    import threading

    from .log_records import LineHandler, print_failure

    before = (logging.lastResort, threading.excepthook, sys.unraisablehook)

    def end() -> None:
        logging.lastResort, threading.excepthook, sys.unraisablehook = before

    def thread_failed(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread else "a thread"
        print_failure(f"{name} ended with an exception", args.exc_value)

    def ignored(args: "sys.UnraisableHookArgs") -> None:
        print_failure(args.err_msg or "an exception was ignored", args.exc_value)

    logging.lastResort = LineHandler(tracebacks=False, level=logging.WARNING)
    threading.excepthook, sys.unraisablehook = thread_failed, ignored
    return end
