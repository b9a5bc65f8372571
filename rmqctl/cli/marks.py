"""Marks of command functions about changes and help; rmqctl.cli.context has those about rows."""

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Changes(Enum):
    """How a command changes something; docs/changes.md has all of them."""

    ASKS = "asks"
    """By the rule of rmqctl.cli.change_steps: a plan, a question, ``--yes``, ``--dry-run``."""
    PLANS = "plans"
    """It does not ask, as nothing that exists is lost; ``--dry-run`` changes nothing."""
    RUNS = "runs"
    """It does not ask and refuses ``--dry-run``: what it will do is not known before."""


def changes(how: Changes) -> Callable[[F], F]:
    """Mark a command function that changes something; its help then has the options for that."""

    def mark(function: F) -> F:
        function.changes = how  # type: ignore[attr-defined]
        return function

    return mark


def most_used(*options: str) -> Callable[[F], F]:
    """Mark a command function with the options of its ``--help``, by their long names.

    ``--help --all`` shows the others, too. Without this mark all own options are shown.
    """

    def mark(function: F) -> F:
        function.most_used = options  # type: ignore[attr-defined]
        return function

    return mark


def refuses(*names: str, because: str) -> Callable[[F], F]:
    """Mark a command function that cannot take these global options, by their names in Cli.given.

    The error has the option before ``because``. One without rows refuses all options of rows.
    """

    def mark(function: F) -> F:
        before = getattr(function, "refused", {})
        function.refused = {**before, **dict.fromkeys(names, because)}  # type: ignore[attr-defined]
        return function

    return mark


def takes_row_options(function: F) -> F:
    """Mark a command function that prints no rows, and has an effect for the options of rows."""
    function.refused = {}  # type: ignore[attr-defined]
    return function


def uses_no_store(function: F) -> F:
    """Mark a command function for which ``--store`` has no effect."""
    function.uses_store = False  # type: ignore[attr-defined]
    return function
