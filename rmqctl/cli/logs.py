"""What the libraries log while a command runs, shown if the user asks for it; and what they warn
of, shown unless the user wants quiet."""

import warnings
from typing import TYPE_CHECKING, Any, Final

from rmqctl.output.last_line import LAST_LINE

if TYPE_CHECKING:
    import logging

    from .context import Cli

_handlers: "Final[list[logging.Handler]]" = []
"""What the last call has added."""


def show_logs(cli: "Cli") -> None:
    """Show warnings on stderr with ``--verbose``, everything with ``--debug``, tracebacks too.

    For commands with threads of their own, before they start them: without a handler Python
    itself would print warnings. The last call counts.
    """
    import copy
    import logging

    class LineHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                LAST_LINE.print(self.format(record))
            except OSError:  # nobody reads it: the work goes on
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
    """Print what Python's ``warnings`` lets through as a sentence, without a place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        from storage.errors import IncompleteStoreWarning

        tell = cli.tell_of_damage if isinstance(message, IncompleteStoreWarning) else cli.warn
        tell(str(message))

    warnings.showwarning = show
