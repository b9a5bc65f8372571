"""Log records of the libraries, shown with ``--verbose`` or ``--debug``; warnings, shown unless
``--quiet``."""

import warnings
from typing import TYPE_CHECKING, Any, Final

from rmqctl.output.last_line import LAST_LINE

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
    import copy
    import logging

    class LineHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                LAST_LINE.print(self.format(record))
            except OSError:  # stderr has no reader: the work goes on
                self.handleError(record)

        def format(self, record: logging.LogRecord) -> str:
            error = record.exc_info[1] if record.exc_info else None
            if debug or error is None:
                return super().format(record)
            short = copy.copy(record)  # other handlers have the traceback
            short.exc_info = short.exc_text = None
            return f"{super().format(short)}: {type(error).__name__}: {error}"

    debug = cli.flag("debug")
    logger = logging.getLogger("rmqctl")
    while _handlers:
        logger.removeHandler(_handlers.pop())
    handler: logging.Handler = logging.NullHandler()
    if cli.flag("verbose") or debug:
        handler = LineHandler()
        handler.setFormatter(logging.Formatter("rmqctl: %(levelname)s %(name)s: %(message)s"))
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
