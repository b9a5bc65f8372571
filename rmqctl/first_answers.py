"""Calls that are answered before Typer is loaded, which takes longer than the answer: a shell that
waits for completions, and the help of the program."""

import os
import sys
from collections.abc import Sequence
from typing import Final

from rmqctl import exit_codes

_COMPLETE: Final = "_RMQCTL_COMPLETE"
"""Set by the completion scripts: the arguments are the words of an unfinished command line."""

_ASKED_FOR_HELP: Final[Sequence[Sequence[str]]] = ([], ["--help"], ["-h"], ["help"])


def is_completed() -> bool:
    """Whether the call is of a shell that completes a word."""
    return _COMPLETE in os.environ


def complete(words: Sequence[str]) -> int:
    """Answer the shell; the exit code."""
    from rmqctl.completion.completion import answer

    return answer(list(words), sys.stdout)


def answer_at_once(args: Sequence[str]) -> None:
    """End the process with the answer, if the arguments have one here."""
    if is_completed():
        use_utf8()
        os._exit(complete(args))
    if list(args) in _ASKED_FOR_HELP:
        from .cli import root_help

        left = memoryview(root_help.text().encode())
        try:
            while left:  # not by the stream, whose buffer would be written once more
                left = left[os.write(sys.stdout.fileno(), left) :]
        except OSError:
            return  # the program says what is wrong with standard output
        os._exit(exit_codes.DONE)


def use_utf8() -> None:
    """Text is UTF-8 in every locale; other bytes pass through unchanged."""
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, "surrogateescape"),
        (sys.stderr, "backslashreplace"),
    ):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors=errors, newline="\n")
