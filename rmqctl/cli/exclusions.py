"""Options that exclude each other: the table, and the check that every command runs."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rmqctl.errors import UsageProblem

EXCLUSIONS: Final = (
    ("*", "--quiet", "--verbose"),
    ("consume", "--exit", "--follow"),
    ("consume", "--follow", "--to"),
    ("consume", "--last", "--from"),
    ("consume", "--last", "--group"),
    ("consume", "--from-where", "--from"),
    ("consume", "--broadcast", "--from"),
    ("consume", "--format", "--output"),
    ("consume", "--format", "--with-meta"),
    ("consume", "--exec", "--format"),
    ("consume", "--exec", "--output"),
    ("consume", "--exec", "--with-meta"),
    ("consume", "--exec", "--delimiter"),
    ("produce", "--queue", "--ordering-key"),
    ("produce", "--delay", "--delay-level"),
    ("produce", "--rate", "--speed"),
    ("message import", "--keep-times", "--speed"),
    ("message query", "--index", "--scan"),
    ("message search", "--around", "--count-only"),
    ("dlq ack", "--older-than", "--to"),
    *(
        ("dlq redrive", "--resume", other)
        for other in (
            *("--all", "--edit", "--target", "--set-property", "--set-body", "--pipe"),
            "--max-redrives",
        )
    ),
    ("dlq redrive", "--edit", "--set-property"),
    ("dlq redrive", "--edit", "--set-body"),
    ("dlq redrive", "--edit", "--pipe"),
    ("dlq redrive", "--set-body", "--pipe"),
    ("lag report", "--since", "--window"),
    ("lag report", "--from-partials", "--store"),
    ("lag report", "--from-partials", "--exact"),
    *(("store fsck", other, "--resume") for other in ("--from", "--only", "--topic", "--fast")),
)
"""The command (``*`` is any) and two options that cannot be given together."""


def check_exclusions(name: str, params: Sequence[Any], typed: set[str], words: list[str]) -> None:
    """Raise UsageProblem, naming both, if two given options exclude each other.

    ``typed`` are the long names of the given options, ``words`` the words after the command.
    """
    for command, first, second in EXCLUSIONS:
        if command in {"*", name} and {first, second} <= typed:
            raise UsageProblem(f"{first} and {second} exclude each other")
    for one, other in _both_ways(params, words):
        raise UsageProblem(f"{one} and {other} exclude each other")


def _both_ways(params: Sequence[Any], words: list[str]) -> Iterator[tuple[str, str]]:
    """Flags that were given together with their negation."""
    given = set(words[: words.index("--")] if "--" in words else words)
    for param in params:
        on = given.intersection(param.opts)
        off = given.intersection(param.secondary_opts)
        if on and off:
            yield min(on), min(off)
