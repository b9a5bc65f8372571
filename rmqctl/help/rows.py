"""The rows of the commands about the program itself."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank, Wide


class TermRow(NamedTuple):
    """A meaning of a term."""

    term: Annotated[str, "the term, code or name"]
    kind: Annotated[str, "word, exit code, finding, state, setting, field, command ..."]
    meaning: Annotated[str, "the meaning", Rank.KEY]
    also: Annotated[list[str], "other names"]
    see: Annotated[list[str], "related commands"]


class CheckRow(NamedTuple):
    """One check of doctor."""

    check: Annotated[str, "the check"]
    status: Annotated[str, "ok, note (something optional is missing), warning or error"]
    found: Annotated[str, "the result", Rank.KEY]
    advice: Annotated[str, "what to do about it; empty if nothing", Rank.MAIN]


class OldCommandRow(NamedTuple):
    """An mqadmin command and its counterpart."""

    name: Annotated[str, "mqadmin's command"]
    here: Annotated[
        str | None, "the rmqctl command, with placeholders for required values", Rank.KEY
    ]
    why_not: Annotated[str | None, "why there is no counterpart", Rank.KEY]
    options: Annotated[list[str], Wide("its options, without the name server's")]


class CheatRow(NamedTuple):
    """An example command."""

    sheet: Annotated[str, "the sheet"]
    task: Annotated[str, "the task", Rank.KEY]
    command: Annotated[str, "the command", Rank.KEY]
