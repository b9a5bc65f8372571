"""Calls of every command with values that no command expects: huge, deep, not UTF-8, not a number.

``hostile_calls`` gives each command of the tree with each of its options, one hostile value each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from typer.core import TyperOption

from rmqctl.cli import lazy
from rmqctl.cli.tree import TREE, CommandRef
from tests.support.every_command import CALLS, Call

VALUES: Final = (
    *(
        "",
        " ",
        "0",
        "-0",
        "-1",
        "1.5",
        "1e3",
        "1e400",
        "nan",
        "inf",
        "true",
        "null",
        "0x10",
        "1_000",
    ),
    *(
        "9" * 20,
        "9" * 5000,
        "1e308",
        "99999999999999",
        "5K",
        "99999999G",
        "+99999999999",
        "\u0661\u0662",
    ),
    *("2262-04-12", "9999-12-31T23:59:59", "1970-01-01", "1600-01-01", "@-99999999999h"),
    *(
        "-99999999d",
        "PT99999999999H",
        "1..0",
        "\x1b[31mX",
        "a\nb",
        "\udcff",
        "..",
        "/",
        "/dev/null",
    ),
    *("{", "[" * 3000, "(" * 3000, "'", "*", "%", "%s", "%q|x", "a=b", ":", ",", ",,", "@", " -- "),
    *("--", "x" * 70_000),
)
_ENDLESS: Final = frozenset(
    {"lag warmup", "man", "completion install", "lag watch", "broker start"}
)
_LEFT_OUT: Final = frozenset(
    {"--help", "--store", "--save", "--config", "--timeout", "--exec", "--pipe", "--tee", "--debug"}
    | {"--engine", "--master", "--follow"}
)
"""Options that name another store, write a file anywhere, run a program, or end no command."""


class HostileCall(NamedTuple):
    """A call, and the words that are added to it: an option with its value, or arguments."""

    call: Call
    extra: list[str]
    arguments: bool

    def words(self, names: dict[str, str]) -> list[str]:
        """The whole command line."""
        limits = ["--timeout", "15s", "--no-input"]
        if self.arguments:
            return [*self.call.command.split(), *limits, "--", *self.extra]
        words = self.call.words(names)
        at = words.index("--") if "--" in words[1:] else len(words)
        return [*words[:at], *self.extra, *limits, *words[at:]]

    def __str__(self) -> str:
        shown = [word if len(word) < 40 else f"{word[:40]}... ({len(word)})" for word in self.extra]
        return f"{self.call.line}  +  {shown}"


def hostile_calls() -> Iterator[HostileCall]:
    """All of them, in the order of the table of calls."""
    for call in CALLS:
        if call.command in _ENDLESS:
            continue
        parameters = _command(call.command).params
        for option in parameters:
            if not isinstance(option, TyperOption):
                continue
            name = max(option.opts, key=len)
            if name in _LEFT_OUT:
                continue
            for value in [None] if option.is_flag else VALUES:
                yield HostileCall(call, [name] if value is None else [name, value], False)
        if any(not isinstance(parameter, TyperOption) for parameter in parameters):
            for value in VALUES:
                yield HostileCall(call, [value], True)


def _command(path: str) -> Any:
    entry = TREE[path.split()[0]]
    leaf = entry if isinstance(entry, CommandRef) else entry.verbs[path.split()[1]]
    return lazy.build(path.split()[-1], leaf)
