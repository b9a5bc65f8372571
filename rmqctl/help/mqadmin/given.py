"""The options of an mqadmin call, parsed as by commons-cli: -g x, -gx, --groupName x."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rmqctl.cli.global_options import SPECS
from rmqctl.errors import UsageProblem

Lines = list[list[str]]
"""rmqctl command lines, without the program's name."""


@dataclass(frozen=True, slots=True)
class MqadminOptions:
    """The given options by mqadmin's letter, flags as "true"; and what exists in the store."""

    values: Mapping[str, str]
    topics: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    queue_file_units: int = 300_000
    """Number of units in a consume queue file."""

    def get(self, letter: str) -> str | None:
        """The value of an option, if given."""
        return self.values.get(letter)

    def __getitem__(self, letter: str) -> str:
        """The value of an option that was given: a required one, or one that was checked."""
        return self.values[letter]

    def number(self, letter: str, otherwise: int = 0) -> int:
        """The number of an option, or the default; UsageProblem for another text."""
        text = self.values.get(letter, str(otherwise))
        if not (text.isascii() and text.isdigit()):
            raise UsageProblem(f"-{letter}: {text!r} is not a number from 0 on")
        return int(text)

    def true(self, letter: str, *, default: bool = False) -> bool:
        """The boolean of an option; UsageProblem for another text."""
        text = self.values.get(letter, str(default)).strip().lower()
        if text not in {"true", "false"}:
            raise UsageProblem(f"-{letter}: {text!r} is neither true nor false")
        return text == "true"

    def options(self, **names: str) -> list[str]:
        """rmqctl options for given letters, with their values: ``p="--perm"``."""
        return [
            word
            for letter, name in names.items()
            if letter in self.values
            for word in (name, self.values[letter])
        ]

    def switches(self, **names: str) -> list[str]:
        """rmqctl switches for given letters: ``o="order"``."""
        return [
            f"--{'' if self.true(letter) else 'no-'}{name}"
            for letter, name in names.items()
            if letter in self.values
        ]


class Old(NamedTuple):
    """An mqadmin command.

    ``options`` are words ``letter:longName``, followed by ``=`` for an option with a value and
    ``*`` for a required one. ``new`` builds rmqctl command lines, or is the sentence that says why
    there is no counterpart. ``ignored`` names options without a meaning here.
    """

    options: str
    new: Callable[[MqadminOptions], Lines] | str
    ignored: str = ""

    @property
    def specs(self) -> Mapping[str, tuple[str, bool, bool]]:
        """Letter: long name, whether it takes a value, whether it is required."""
        found = {}
        for word in f"{self.options} n:namesrvAddr=".split():
            letter, _, rest = word.partition(":")
            name = rest.rstrip("=*")
            found[letter] = (name, "=" in rest, "*" in rest)
        return found


_GUARD: Final = ("--",)
_OUR_SHORT: Final = {"-S": True, "-o": True, "-q": False, "-v": False, "-y": False}
"""Short global options of rmqctl, unless the mqadmin command has the letter; whether they take a
value."""
_OUR_LONG: Final = {spec.names[-1]: bool(spec.metavar) for spec in SPECS}
"""Long global options of rmqctl; whether they take a value."""


def parse(name: str, old: Old, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options by letter, and options for the rmqctl command.

    UsageProblem for an unknown or missing option.
    """
    specs = old.specs
    letters = {long: letter for letter, (long, _, _) in specs.items()}
    values: dict[str, str] = {}
    own: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        long, equals, value = word.lstrip("-").partition("=")
        letter = letters.get(long, "")
        if not letter and word.startswith("--") and len(word) > 2:
            own.append(word)
            takes = _OUR_LONG.get(word, bool(left) and not left[0].startswith("-"))
            if takes and not equals and left:
                own.append(left.pop(0))
            continue
        if not letter and word.startswith("-") and word[1:2] in specs:
            letter, value = word[1], word[2:].removeprefix("=")
            equals = "=" if value else ""
        if not letter and word in _OUR_SHORT:
            own += [word, *([left.pop(0)] if _OUR_SHORT[word] and left else [])]
            continue
        if not letter and _OUR_SHORT.get(word[:2]):  # the value in the same word, as -Sfolder
            own.append(word)
            continue
        if not letter:
            raise UsageProblem(f"mqadmin {name} has no option {word!r}")
        takes_value = specs[letter][1]
        if takes_value and not equals:
            if not left:
                raise UsageProblem(f"mqadmin {name}: {word} needs a value")
            value = left.pop(0)
        values[letter] = value if takes_value else "true"
    for letter, (long, _, required) in specs.items():
        if required and letter not in values:
            raise UsageProblem(f"mqadmin {name}: -{letter} ({long}) is missing")
    return values, own


def line(words: str, options: Sequence[str] = (), *arguments: str) -> Lines:
    """One command line; ``--`` stands before arguments that look like options."""
    guard = _GUARD if any(argument.startswith("-") for argument in arguments) else ()
    return [[*words.split(), *options, *guard, *arguments]]
