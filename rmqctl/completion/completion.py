"""Answers a shell: the words that may stand at the cursor.

The scripts in ``completions/`` run ``rmqctl`` with ``_RMQCTL_COMPLETE=1`` and the words of the
line up to the cursor as arguments. The answer has a line ``value<TAB>help`` for each possible word.
Without a line the shell offers file names.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from rmqctl.cli.context import Cli
from rmqctl.cli.tree import TREE, CommandGroup, CommandRef

from .completers import COMPLETERS, MOST_ITEMS, old_options
from .parameter import Parameter, parameters_of

_TOPICS = {"topic", "topics"}
_FIELDS = {"columns", "sort", "where"}
_LISTS = {"columns", "sort", "queue", "only", "fields"}
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
        place.option = _option(place, name)
        prefix = name + "="
    elif place.option is None and not place.only_arguments:
        option, value = _option_of(place, incomplete)
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

    def __init__(self) -> None:
        self.table: Mapping[str, CommandRef | CommandGroup] | None = TREE
        """The commands of the program or of a noun; None: a command was named."""
        self.name = ""
        """The command's words, without the program's name."""
        self.parameters, self.row_type = parameters_of("", is_group=True)
        self.option: Parameter | None = None
        """The option whose value comes next."""
        self.arguments: list[str] = []
        """The positional arguments before the cursor."""
        self.by_option: list[str] = []
        """The arguments whose only value an option before the cursor gives."""
        self.only_arguments = False
        """Whether ``--`` is before the cursor."""
        self.lost = False
        """Whether a word before the cursor names no command."""

    def enter(self, word: str, entry: CommandRef | CommandGroup) -> None:
        """Go on with the command or the noun that a word names."""
        self.table = entry.verbs if isinstance(entry, CommandGroup) else None
        self.name = f"{self.name} {word}".strip()
        is_group = self.table is not None
        self.parameters, self.row_type = parameters_of(self.name, is_group=is_group)

    def candidates(self, cli: Cli, incomplete: str) -> Iterable[tuple[str, str]]:
        """All words that may stand here; the caller filters them by what was typed."""
        if self.lost:
            return []
        if self.option is not None and self.option.name in _FIELDS:
            return _fields(self.row_type)
        if self.option is not None:
            return _values(self, self.option, cli)
        if incomplete.startswith("-") and not self.only_arguments:
            return self._options(short=not incomplete.startswith("--"))
        if self.table is not None:
            return [(name, entry.help) for name, entry in self.table.items()]
        arguments = self.own_arguments()
        if not arguments:
            return []
        before = len(self.arguments)
        place = min(before, len(arguments) - 1)
        if before > place and arguments[place].nargs != -1:
            return []
        cli.given["completed_words"] = self.arguments
        return _values(self, arguments[place], cli)

    def own_arguments(self) -> list[Parameter]:
        """The arguments of the command that words give."""
        return [one for one in self.parameters if not (one.opts or one.name in self.by_option)]

    def _options(self, *, short: bool) -> Iterator[tuple[str, str]]:
        """The options of the command; after the name of an mqadmin command, its options first."""
        taken = set()
        if self.name == "mqadmin" and self.arguments:
            for name, text in old_options(self.arguments[0]):
                taken.add(name)
                if name.startswith("--") or short:
                    yield name, text
        for name, text in _options(self.parameters, short=short):
            if name not in taken:
                yield name, text


def _walk(words: Sequence[str], cli: Cli) -> _Place:
    """Find the command that the words name, and count its arguments."""
    place = _Place()
    for word in words:
        if place.option is not None:
            _keep(place, place.option, word, cli)
            place.option = None
        elif word == "--":
            place.only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not place.only_arguments:
            option, value = _option_of(place, word)
            if option is not None and value is not None:
                _keep(place, option, value, cli)
            else:
                place.option = option
        elif place.table is not None:
            if word == "help":  # `help topic list` is `topic list --help`
                continue
            entry = place.table.get(word)
            if entry is None:
                place.lost = True
                break
            place.enter(word, entry)
        else:
            _keep_argument(place, word, cli)
            place.arguments.append(word)
    return place


def _keep(place: _Place, option: Parameter, value: str, cli: Cli) -> None:
    """Keep the options that the completers need: the store and the settings."""
    if option.name in {"store", "context", "config"}:
        cli.remember(option.name, [value] if option.multiple else value)
    named = _named(place, option)
    if named.name in _TOPICS:
        cli.given["completed_topic"] = value
    if named is not option and named.nargs == 1:
        place.by_option.append(named.name)


def _named(place: _Place, option: Parameter) -> Parameter:
    """The argument whose value an option gives; else the option itself."""
    arguments = (one for one in place.parameters if not one.opts and one.name == option.argument)
    return next(arguments, option)


def _keep_argument(place: _Place, word: str, cli: Cli) -> None:
    """Keep a topic, as its queues may be completed later on the line."""
    arguments = place.own_arguments()
    if arguments and arguments[min(len(place.arguments), len(arguments) - 1)].name in _TOPICS:
        cli.given.setdefault("completed_topic", word)


def _option_of(place: _Place, word: str) -> tuple[Parameter | None, str | None]:
    """The option in a word that takes a value, and the value if the word has it: ``-qSstore``."""
    name, equals, value = word.partition("=")
    option = _option(place, name)
    if option is not None or word.startswith("--"):
        takes_value = option is not None and not option.is_flag
        return (option if takes_value else None), (value if equals else None)
    for at, letter in enumerate(word[1:] if word.startswith("-") else "", 2):
        option = _option(place, f"-{letter}")
        if option is None:
            break
        if not option.is_flag:
            return option, word[at:] or None
    return None, None


def _option(place: _Place, name: str) -> Parameter | None:
    return next((one for one in place.parameters if name in one.opts), None)


def _options(parameters: Iterable[Parameter], *, short: bool) -> Iterator[tuple[str, str]]:
    """The options of a command: long forms, unless a single dash was typed."""
    for parameter in parameters:
        if parameter.hidden:
            continue
        for name in parameter.opts:
            if name.startswith("--") or short:
                yield name, parameter.help
    yield "--help", "Show the help and exit"


def _fields(row_type: str | None) -> Iterable[tuple[str, str]]:
    """The fields of the rows that a command prints."""
    if row_type is None:
        return []
    from importlib import import_module

    from rmqctl.output.fields import fields_of

    module, _, name = row_type.partition(":")
    return [(one.name, one.help) for one in fields_of(getattr(import_module(module), name))]


def _values(place: _Place, parameter: Parameter, cli: Cli) -> Iterable[tuple[str, str]]:
    parameter = _named(place, parameter)
    completer = COMPLETERS.get(f"{place.name} {parameter.name}") or COMPLETERS.get(parameter.name)
    everywhere = {one.name for one in parameters_of("", is_group=True).of}
    own = parameter.name in everywhere and not parameter.everywhere  # has values of its own
    if completer is not None and not own:
        return completer(cli)
    return [(choice, "") for choice in parameter.choices]
