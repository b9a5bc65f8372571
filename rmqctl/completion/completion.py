"""Answers a shell: the words that may stand at the cursor.

The scripts in ``completions/`` run ``rmqctl`` with ``_RMQCTL_COMPLETE=1`` and the words of the
line up to the cursor as arguments. The answer has a line ``value<TAB>help`` for each possible word.
Without a line the shell offers file names.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from typer.core import TyperOption

from rmqctl.cli import lazy
from rmqctl.cli.context import Cli
from rmqctl.cli.global_options import NAMES, is_everywhere
from rmqctl.cli.names_both_ways import NameOption

from .completers import COMPLETERS, MOST_ITEMS, old_options

_TOPICS = {"topic", "topics"}
_FIELDS = {"columns", "sort", "where"}
_LISTS = {"columns", "sort", "queue", "only"}
"""Options with values separated by commas; the last value is completed."""


def answer(words: Sequence[str], out: TextIO) -> int:
    """Print the completions of the last of ``words``; never fails and never warns."""
    with contextlib.suppress(Exception):
        for value, text in possibilities(words):
            if value.isprintable():  # a name with a line break would be two
                out.write(f"{value}\t{' '.join(text.split())}\n")
        out.flush()
    return 0


def possibilities(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The completions of the last word, with a line of help each; at most 500."""
    *before, incomplete = words or [""]
    cli = Cli()
    cli.given["quiet"] = True
    place = _walk(before, cli)
    prefix = ""
    if place.option is None and incomplete.startswith("--") and "=" in incomplete:
        name, _, incomplete = incomplete.partition("=")
        place.option = _option(place.command, name)
        prefix = name + "="
    elif place.option is None and not place.only_arguments:
        option, value = _option_of(place.command, incomplete)
        if option is not None and value is not None:
            place.option = option
            prefix, incomplete = incomplete.removesuffix(value), value
    if place.option is not None and place.option.name in _LISTS:
        before_it = incomplete.rpartition(",")
        start = "-" if place.option.name == "sort" and before_it[2].startswith("-") else ""
        prefix += before_it[0] + before_it[1] + start
        incomplete = before_it[2].removeprefix(start)
    cli.given["completed_begin"] = incomplete
    found = (
        (prefix + value, text)
        for value, text in place.candidates(cli, incomplete)
        if value.startswith(incomplete)
    )
    for item, _ in zip(found, range(MOST_ITEMS), strict=False):
        yield item


class _Place:
    """The position of the cursor in the command line."""

    def __init__(self, command: Any) -> None:
        self.command = command
        self.name = ""
        """The command's words, without the program's name."""
        self.option: TyperOption | None = None
        """The option whose value comes next."""
        self.arguments: list[str] = []
        """The positional arguments before the cursor."""
        self.by_option: list[Any] = []
        """The arguments whose only value an option before the cursor gives."""
        self.only_arguments = False
        """Whether ``--`` is before the cursor."""
        self.lost = False
        """Whether a word before the cursor names no command."""

    def candidates(self, cli: Cli, incomplete: str) -> Iterable[tuple[str, str]]:
        """All words that may stand here; the caller filters them by what was typed."""
        if self.lost:
            return []
        if self.option is not None and self.option.name in _FIELDS:
            return _fields(self.command)
        if self.option is not None:
            return _values(self.option, cli, self.name)
        if incomplete.startswith("-") and not self.only_arguments:
            return self._options(short=not incomplete.startswith("--"))
        if isinstance(self.command, lazy.LazyGroup):
            return [(name, entry.help) for name, entry in self.command.table.items()]
        arguments = self.own_arguments()
        if not arguments:
            return []
        before = len(self.arguments)
        place = min(before, len(arguments) - 1)
        if before > place and arguments[place].nargs != -1:
            return []
        cli.given["completed_words"] = self.arguments
        return _values(arguments[place], cli, self.name)

    def own_arguments(self) -> list[Any]:
        """The arguments of the command that words give."""
        return [
            parameter
            for parameter in self.command.params
            if not isinstance(parameter, TyperOption) and parameter not in self.by_option
        ]

    def _options(self, *, short: bool) -> Iterator[tuple[str, str]]:
        """The options of the command; after the name of an mqadmin command, its options first."""
        taken = set()
        if self.name == "mqadmin" and self.arguments:
            for name, text in old_options(self.arguments[0]):
                taken.add(name)
                if name.startswith("--") or short:
                    yield name, text
        for name, text in _options(self.command, short=short):
            if name not in taken:
                yield name, text


def _walk(words: Sequence[str], cli: Cli) -> _Place:
    """Find the command that the words name, and count its arguments."""
    place = _Place(lazy.root())
    for word in words:
        if place.option is not None:
            _keep(place, place.option, word, cli)
            place.option = None
        elif word == "--":
            place.only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not place.only_arguments:
            option, value = _option_of(place.command, word)
            if option is not None and value is not None:
                _keep(place, option, value, cli)
            else:
                place.option = option
        elif isinstance(place.command, lazy.LazyGroup):
            if word == "help":  # `help topic list` is `topic list --help`
                continue
            entry = place.command.table.get(word)
            if entry is None:
                place.lost = True
                break
            place.command = lazy.build(word, entry)
            place.name = f"{place.name} {word}".strip()
        else:
            _keep_argument(place, word, cli)
            place.arguments.append(word)
    return place


def _keep(place: _Place, option: TyperOption, value: str, cli: Cli) -> None:
    """Keep the options that the completers need: the store and the settings."""
    if option.name in {"store", "context", "config"}:
        cli.remember(option.name, [value] if option.multiple else value)
    named = option.argument if isinstance(option, NameOption) else option
    if named.name in _TOPICS:
        cli.given["completed_topic"] = value
    if named is not option and named.nargs == 1:
        place.by_option.append(named)


def _keep_argument(place: _Place, word: str, cli: Cli) -> None:
    """Keep a topic, as its queues may be completed later on the line."""
    arguments = place.own_arguments()
    if arguments and arguments[min(len(place.arguments), len(arguments) - 1)].name in _TOPICS:
        cli.given.setdefault("completed_topic", word)


def _option_of(command: Any, word: str) -> tuple[TyperOption | None, str | None]:
    """The option in a word that takes a value, and the value if the word has it: ``-qSstore``."""
    name, equals, value = word.partition("=")
    option = _option(command, name)
    if option is not None or word.startswith("--"):
        takes_value = option is not None and not option.is_flag
        return (option if takes_value else None), (value if equals else None)
    for place, letter in enumerate(word[1:] if word.startswith("-") else "", 2):
        option = _option(command, f"-{letter}")
        if option is None:
            break
        if not option.is_flag:
            return option, word[place:] or None
    return None, None


def _option(command: Any, name: str) -> TyperOption | None:
    for parameter in command.params:
        if isinstance(parameter, TyperOption) and name in parameter.opts + parameter.secondary_opts:
            return parameter
    return None


def _options(command: Any, *, short: bool) -> Iterator[tuple[str, str]]:
    """The options of a command: long forms, unless a single dash was typed."""
    for parameter in command.params:
        if not isinstance(parameter, TyperOption) or parameter.hidden:
            continue
        for name in parameter.opts + parameter.secondary_opts:
            if name.startswith("--") or short:
                yield name, parameter.help or ""
    yield "--help", "Show the help and exit"


def _fields(command: Any) -> Iterable[tuple[str, str]]:
    """The fields of the rows that a command prints."""
    row_types = getattr(command, "row_types", ())
    if not row_types:
        return []
    from rmqctl.output.fields import fields_of

    return [(field.name, field.help) for field in fields_of(row_types[0])]


def _values(parameter: Any, cli: Cli, command: str) -> Iterable[tuple[str, str]]:
    if isinstance(parameter, NameOption):
        parameter = parameter.argument
    completer = COMPLETERS.get(f"{command} {parameter.name}") or COMPLETERS.get(parameter.name)
    own = parameter.name in NAMES and not is_everywhere(parameter)  # has values of its own
    if completer is not None and not own:
        return completer(cli)
    return [(str(choice), "") for choice in getattr(parameter.type, "choices", ())]
