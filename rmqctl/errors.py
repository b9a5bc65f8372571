"""Exceptions that end a command with a sentence and an exit code.

CliError             a sentence for stderr and a code of :mod:`rmqctl.exit_codes`
  UsageProblem       2: a value on the command line is malformed
  NotFound           3: no such topic, group, message or store
  Refused            7: a safety rule forbids it
  PartlyDone         8: part of the work was done; the report says which part
  OutputFailed       1: standard output takes nothing more
"""

from . import exit_codes


class CliError(Exception):
    """A failure that is shown as one sentence, without a traceback."""

    exit_code: int = exit_codes.FAILURE

    def __init__(self, sentence: str, exit_code: int | None = None) -> None:
        super().__init__(sentence)
        if exit_code is not None:
            self.exit_code = exit_code


class UsageProblem(CliError):
    """A value on the command line is malformed; the sentence says what is valid."""

    exit_code = exit_codes.USAGE


class NotFound(CliError):
    """A named object does not exist; the sentence says where it was searched for."""

    exit_code = exit_codes.NOT_FOUND


class Refused(CliError):
    """A safety rule forbids it; the sentence names the option or command that allows it."""

    exit_code = exit_codes.REFUSED


class PartlyDone(CliError):
    """Some of the work was done and stays done."""

    exit_code = exit_codes.PARTLY


class OutputFailed(CliError):
    """Standard output takes nothing more, such as on a full disk; the store is not concerned."""
