"""A change as a value: what it would do, what forbids it, whether it still fits, and doing it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rmqctl.errors import CliError

Warn = Callable[[str], object]
"""Takes a sentence about a doubtful fact."""
JavaCheck = Callable[[], None]
"""Refuses (StoreInUseError) beside a Java broker; called right before the write."""


def no_warning(_: str) -> None:
    """Take a warning and do nothing."""


class Outcome(NamedTuple):
    """What a change did."""

    rows: Iterable[Any]
    """Rows of ``result_type`` in the order of the plan. They may come while the work is done. A row
    with a field ``applied`` that is False was not done; None: it was left alone."""
    change_id: int | None = None
    """Its number in the change journal, of a change that can be undone."""


class Change(ABC):
    """What a function of rmqctl.admin would do. Nothing is written before ``apply``.

    Attributes:
        row_type, plan: what would be done, a row for each part.
        result_type: the type of the rows of ``apply``; it may have more fields than the plan's.
        summary: sentences about the whole plan.
        refusals: errors that forbid it, the first one first; ``apply`` raises the first.
        question: what a person is asked before it is done.
        confirm_name: a name that has to be typed as the answer; None: yes is enough.
        has_effect: False if every part is to stay as it is. ``apply`` writes nothing then.
        entry: fields of the journal entry that belong to this kind of change. User, host and reason
            are given to ``apply``.
        has_part_rows: after ``apply``, whether a row that was not done was done in part.
        undone_by_number: whether ``offset undo`` takes it back by its number.
    """

    has_part_rows = False
    undone_by_number = True

    def __init__(
        self,
        row_type: type,
        plan: Sequence[Any],
        *,
        result_type: type | None = None,
        summary: Iterable[str] = (),
        refusals: Iterable[CliError] = (),
        question: str = "",
        confirm_name: str | None = None,
        has_effect: bool = True,
        entry: Mapping[str, Any] | None = None,
    ) -> None:
        self.row_type = row_type
        self.plan = plan
        self.result_type = result_type or row_type
        self.summary = tuple(summary)
        self.refusals = tuple(refusals)
        self.question = question
        self.confirm_name = confirm_name
        self.has_effect = has_effect
        self.entry = dict(entry or {})

    def refuse(self) -> None:
        """Raise the first refusal, if there is one."""
        if self.refusals:
            raise self.refusals[0]

    def check(self) -> None:  # noqa: B027 - most changes have nothing to check
        """Raise if anything has moved since the plan was made. Changes nothing.

        ``apply`` checks the same once more under its locks.
        """

    def unchanged_rows(self) -> Sequence[Any]:
        """The rows of ``result_type`` where ``has_effect`` is False."""
        return self.plan

    @abstractmethod
    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Do it. ``note`` is the journal entry's head: see :func:`journal_note`.

        Raises the first refusal, and what ``check`` raises; nothing has changed then.
        """


def journal_note(command: str, *, reason: str | None = None) -> dict[str, str]:
    """The head of a journal entry: command, user, host, and why.

    ``command`` names the action, such as "offset reset". ``reason`` is free text.
    """
    import os
    from getpass import getuser
    from socket import gethostname

    from rmqctl.output.values import escape_controls

    try:
        user = getuser()
    except (KeyError, OSError):  # a user id without a name
        user = str(os.getuid())
    # The environment's names may be any bytes; the journal is text.
    host = escape_controls(gethostname())
    note = {"command": command, "user": escape_controls(user), "host": host}
    return {**note, "reason": reason} if reason else note
