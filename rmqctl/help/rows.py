"""The rows of the commands that tell about the program itself."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Wide


class TermRow(NamedTuple):
    """A meaning of a term."""

    term: Annotated[str, "the word, code or name"]
    kind: Annotated[str, "word, exit code, finding, state, setting, field, command ..."]
    meaning: Annotated[str, "what it means"]
    also: Annotated[list[str], "other names of it"]
    see: Annotated[list[str], "commands that have to do with it"]


class CheckRow(NamedTuple):
    """One thing that doctor has looked at."""

    check: Annotated[str, "what was looked at"]
    status: Annotated[str, "ok, note (something optional is missing), warning or error"]
    found: Annotated[str, "what was found"]
    advice: Annotated[str, "what could be done about it; empty if nothing has to be"]


class OldCommandRow(NamedTuple):
    """A command of mqadmin and what stands for it."""

    name: Annotated[str, "mqadmin's command"]
    here: Annotated[str | None, "what it runs, with samples for what must be given"]
    why_not: Annotated[str | None, "why there is nothing like it"]
    options: Annotated[list[str], Wide("its options, but for the name server's")]


class CheatRow(NamedTuple):
    """A line to copy."""

    sheet: Annotated[str, "the sheet it is on"]
    task: Annotated[str, "what it is for"]
    command: Annotated[str, "the line"]
