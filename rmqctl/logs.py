"""What the libraries log while a command runs: nothing is shown unless the user asks for it."""

import sys
from typing import TYPE_CHECKING

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
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("rmqctl: %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if cli.flag("debug") else logging.WARNING)
