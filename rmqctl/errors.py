"""What a command raises to end with a sentence and an exit code.

CliError             a sentence for stderr and a code of :mod:`rmqctl.exit_codes`
  UsageProblem       2: a value on the command line is malformed
  NotFound           3: no such topic, group, message or store
  Refused            7: a safety rule says no
  PartlyDone         8: some was done, the report says which
"""

from . import exit_codes


class CliError(Exception):
    """A failure that the user reads as one sentence; never a traceback."""

    exit_code: int = exit_codes.FAILURE

    def __init__(self, sentence: str, exit_code: int | None = None) -> None:
        super().__init__(sentence)
        if exit_code is not None:
            self.exit_code = exit_code


class UsageProblem(CliError):
    """A value on the command line is malformed; the sentence says what would be right."""

    exit_code = exit_codes.USAGE


class NotFound(CliError):
    """The thing that was named does not exist; the sentence says where it was looked for."""

    exit_code = exit_codes.NOT_FOUND


class Refused(CliError):
    """A safety rule says no; the sentence says which option or command allows it."""

    exit_code = exit_codes.REFUSED


class PartlyDone(CliError):
    """Some of the work was done and stays done."""

    exit_code = exit_codes.PARTLY
