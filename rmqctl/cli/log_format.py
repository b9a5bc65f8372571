"""The form of messages on standard error: ``--log-format text`` or ``json``."""

from collections.abc import Mapping, Sequence
from typing import Final

TEXT: Final = "text"
JSON: Final = "json"
LOG_FORMATS: Final = (TEXT, JSON)
_OPTION: Final = "--log-format"
_VARIABLE: Final = "RMQCTL_LOG_FORMAT"


def typed_log_format(args: Sequence[str]) -> str | None:
    """The form that a command line names, read before it is parsed: parsing may fail."""
    found = None
    for place, word in enumerate(args):
        if word == "--":
            break
        if word == _OPTION and place + 1 < len(args):
            found = args[place + 1]
        elif word.startswith(f"{_OPTION}="):
            found = word.partition("=")[2]
    return found


def first_log_format(args: Sequence[str], environ: Mapping[str, str]) -> str:
    """The form until settings files are read."""
    return typed_log_format(args) or environ.get(_VARIABLE) or TEXT
