"""What the libraries log while a command runs: nothing is shown unless the user asks for it."""

from typing import TYPE_CHECKING

from rmqctl.output.last_line import LAST_LINE

if TYPE_CHECKING:
    from rmqctl.context import Cli


def show_logs(cli: "Cli") -> None:
    """Show warnings on stderr with ``--verbose``, everything with ``--debug``.

    For commands with threads of their own, before they start them: without a handler Python
    itself would print warnings.
    """
    import logging

    logger = logging.getLogger("rmqctl")
    if not (cli.flag("verbose") or cli.flag("debug")):
        logger.addHandler(logging.NullHandler())
        return

    class LineHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                LAST_LINE.print(self.format(record))
            except OSError:  # nobody reads it: the work goes on
                self.handleError(record)

    handler = LineHandler()
    handler.setFormatter(logging.Formatter("rmqctl: %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if cli.flag("debug") else logging.WARNING)
