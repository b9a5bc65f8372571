"""What the console asks of the terminal, and the driver that writes to it."""

import os
import sys

from rmqctl.errors import UsageProblem


def check_terminal() -> None:
    """Refuse what cannot show a full screen. UsageProblem names what to use instead."""
    problem = None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        problem = "standard input and output are not both a terminal"
    elif os.environ.get("TERM", "dumb") == "dumb":
        problem = "this terminal cannot place a cursor (TERM is dumb or not set)"
    if problem:
        raise UsageProblem(
            f"the console needs a terminal: {problem}; 'rmqctl lag watch' prints rows that change"
        )
