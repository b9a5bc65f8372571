"""Suggestions for a name that does not exist: a command, an option, a topic, a group."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rmqctl.cli.tree import TREE, CommandGroup, CommandRef

from .words_of_others import (
    A_FOLDER,
    BELOW_NOUNS,
    INVALID,
    MISSING,
    OPTIONS,
    OPTIONS_OF,
    OTHERS,
    Meant,
)

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_NEAR: Final = 0.7
"""Words that share less are not taken for a misspelling: 'prune' is no 'produce'."""
_TYPO: Final = 0.8
_LONG_ENOUGH: Final = 4
_SEVERAL: Final = 3
"""Most commands that one hint names."""
_MISSING: Final = re.compile(r"(topic|group) (\S+) (?:does not exist|has no )")
_NO_FORMAT: Final = re.compile(r"--output: ['\"](.*)['\"] is not a format")
_EXAMPLE: Final = re.compile(r"^ *([A-Z][^:\n]*): +(rmqctl .*)$", re.MULTILINE)
"""An example in the help of a command: what it does, and the line."""
_QUEUE: Final = re.compile(r"(.+):(\d+(?:[,-]\d+)*)\Z")
_OF_A_NAME: Final[Mapping[str, str]] = {
    "topic": "topic describe",
    "group": "group describe",
    "dlq": "dlq browse",
    "retry": "retry browse",
    "offset": "offset list",
    "lag": "lag show",
}
"""What is meant by a noun with the name of a topic or a group that exists."""
_OF_KUBECTL: Final[Mapping[str, str]] = {"get": "list", "rm": "delete", "edit": "alter"}


def command_meant(
    name: str,
    table: Mapping[str, CommandRef | CommandGroup],
    rest: Sequence[str] = (),
    cli: "Cli | None" = None,
) -> str:
    """The end of a sentence about an unknown command, or nothing.

    ``rest`` are the words after it. The names of the store are read if ``cli`` is given.
    """
    meant = list(_meant(name, table, rest, cli))
    if not meant:
        if table is TREE:
            return "; 'rmqctl cheat' lists commands by task"
        *verbs, last = table
        return f"; there are {', '.join(verbs)} and {last}"
    if meant[0].startswith("mqadmin "):
        return f", mqadmin's is 'rmqctl {meant[0]}'"
    return f", did you mean {' or '.join(map(repr, dict.fromkeys(meant)))}?"


def _meant(
    name: str,
    table: Mapping[str, CommandRef | CommandGroup],
    rest: Sequence[str],
    cli: "Cli | None",
) -> Iterable[str]:
    if table is TREE:
        return _at_the_top(name, rest)
    noun = next((noun for noun, entry in TREE.items() if getattr(entry, "verbs", None) is table))
    other = BELOW_NOUNS.get(noun, {}).get(name)
    if other is not None:
        return _several(other)
    near = get_close_matches(name, table, 1, _NEAR)
    return near or list(_of_a_name(noun, name, cli)) or _like(name, noun) or _by_task(name, noun)


def _at_the_top(name: str, rest: Sequence[str]) -> Iterable[str]:
    turned = _turned(name, rest)
    if turned:
        return turned
    found = [*_with_verb(name), *_several(OTHERS.get(name, ()))]
    if found:
        return found
    from rmqctl.help.mqadmin.translate import COMMANDS

    old = {known.lower(): known for known in COMMANDS}
    if name.lower() in old:
        return [f"mqadmin {old[name.lower()]}"]
    explained = list(_explained(name, rest))
    near = get_close_matches(name, TREE, 1, _NEAR)
    like = _like(name, "")
    return near or (explained if rest else []) or like or _by_task(name) or explained


def _like(name: str, noun: str) -> Sequence[str]:
    """What a word means that is almost one of the tables, or has one as a part: skip-message."""
    for words in (BELOW_NOUNS.get(noun, {}), OTHERS):
        parts = [part for part in (name, *name.split("-")) if part in words]
        near = parts[:1] or get_close_matches(name, words, 1, _TYPO)
        if near:
            return _several(words[near[0]])
    return ()


def _by_task(name: str, noun: str = "") -> list[str]:
    """Commands whose task in the cheat sheets, or whose line in the help, has the word.

    For words that no table has. At most two; those of ``noun`` are preferred.
    """
    if len(name) < _LONG_ENOUGH:
        return []
    from rmqctl.help.cheats import SHEETS

    word = re.compile(rf"\b{re.escape(name.lower().removesuffix('s'))}")
    lines = [*(one for sheet in SHEETS.values() for one in sheet.lines.items()), *_help_lines()]
    found = [command for task, command in lines if word.search(task.lower())]
    commands = [one.partition("rmqctl ")[2] if "rmqctl " in one else one for one in found]
    own = [one for one in commands if one.startswith(f"{noun} ")] if noun else []
    return (own or commands)[:2]


def _help_lines() -> Iterator[tuple[str, str]]:
    for noun, entry in TREE.items():
        if isinstance(entry, CommandGroup):
            yield from ((of.help, f"{noun} {verb}") for verb, of in entry.verbs.items())
        else:
            yield entry.help, noun


def _explained(name: str, rest: Sequence[str]) -> Iterator[str]:
    """``help exit codes``: a term, not a command."""
    from rmqctl.help.terms import find

    question = " ".join([name, *(word for word in rest if not word.startswith("-"))])
    if find(question):
        yield f"explain {question}"


def _turned(verb: str, rest: Sequence[str]) -> list[str]:
    """``get topics`` and ``describe topic orders`` of kubectl: the noun comes first here."""
    if not rest:
        return []
    noun = next((one for one in (rest[0], rest[0].removesuffix("s")) if one in TREE), "")
    entry = TREE.get(noun)
    if not isinstance(entry, CommandGroup):
        return []
    named = [word for word in rest[1:2] if not word.startswith("-")]
    meant = "describe" if verb == "get" and named and "describe" in entry.verbs else verb
    for one in (meant, _OF_KUBECTL.get(meant, meant)):
        if one in entry.verbs:
            return [" ".join([noun, one, *named])]
    return [*_several(BELOW_NOUNS.get(noun, {}).get(verb, ()))]


def _several(meant: Meant) -> Sequence[str]:
    return (meant,) if isinstance(meant, str) else meant


def _of_a_name(noun: str, name: str, cli: "Cli | None") -> Iterator[str]:
    """The command that shows a topic or a group of this name."""
    if noun == "message":
        if not name.isalpha():
            yield f"message search {name}"
        return
    if noun not in _OF_A_NAME:
        return
    there: set[str] = set()
    if cli is not None:
        with suppress(Exception):  # an error is being reported; there may be no store
            from .completers import groups, topics

            there = {known for known, _ in (topics if noun == "topic" else groups)(cli)}
    if name in there or (noun == "lag" and not there and not _like(name, noun)):
        yield f"{_OF_A_NAME[noun]} {name}"


def _with_verb(name: str) -> Iterator[str]:
    """Commands whose verb alone was typed; not the verbs that every noun has."""
    found = [
        f"{noun} {name}"
        for noun, entry in TREE.items()
        if isinstance(entry, CommandGroup) and name in entry.verbs
    ]
    if len(found) <= 3:
        yield from found


def option_meant(
    name: str,
    known: Iterable[str],
    command: str = "",
    verbs: Mapping[str, CommandRef | CommandGroup] | None = None,
) -> str:
    """The end of a sentence about an unknown option of another tool, or nothing.

    ``known`` are the options of the command. ``verbs`` are the commands of a noun, if one stands
    before the option.
    """
    for path in (command, ""):
        sentence = OPTIONS_OF.get(path, {}).get(name)
        if sentence is not None:
            return f"; {sentence}"
    if verbs is not None and verbs is not TREE:
        having = [f"'{command} {verb}'" for verb in verbs if name in _options_of(verbs[verb], verb)]
        return f"; name the command first: {' or '.join(having[:_SEVERAL])}" if having else ""
    names = set(known)
    other = next((one for one in _several(OPTIONS.get(name, ())) if one.split()[0] in names), None)
    return "" if other is None else f"; the option is {other} here"


def is_like_one(name: str, known: Iterable[str]) -> bool:
    """Whether an option is a misspelling of a known one."""
    return bool(get_close_matches(name, known, 1, _TYPO))


def option_by_task(name: str, text: str, options: Iterable[tuple[str, str]]) -> str:
    """The same, for an option of no table: by its words in the examples and the help of options.

    ``text`` is the help of the command, ``options`` are its options with their help.
    """
    words = [word for word in name.strip("-").lower().split("-") if len(word) >= _LONG_ENOUGH]
    sought = [re.compile(rf"\b{re.escape(word.removesuffix('s'))}") for word in words]
    for label, line in _EXAMPLE.findall(text):
        if any(one.search(label.lower()) for one in sought):
            return f"; such as: {line.rstrip(chr(92)).strip()}"
    found = [opt for opt, about in options if any(one.search(about.lower()) for one in sought)]
    return f"; see {' or '.join(found[:2])}" if found else ""


def _options_of(entry: CommandRef | CommandGroup, verb: str) -> set[str]:
    from rmqctl.cli.lazy import build

    return {name for parameter in build(verb, entry).params for name in parameter.opts}


def extra_meant(command: str, words: Sequence[str]) -> str:
    """The end of a sentence about words too many, or taken for names: options that mean another
    thing elsewhere."""
    after = dict(pairwise(words))
    if after.get("-n", "").isdigit():
        return "; -n is --dry-run, and --limit N or --count N takes a number"
    if after.get("-q", "").isdigit():
        return "; -q is --quiet, and -Q N is a queue"
    if after.get("-f", "").startswith("-"):
        return "; -f takes a template, and -F follows"
    if command == "store tail":
        return "; for one topic add --where 'topic = NAME'"
    return ""


def format_meant(sentence: str) -> str:
    """The end of a sentence about an unknown ``-o``, which is an offset or a template elsewhere."""
    found = _NO_FORMAT.match(sentence)
    if found is None:
        return ""
    text = found[1]
    if text.startswith("="):
        return f"; a short option has no =: -o {text[1:]}"
    if text in ("beginning", "earliest", "start"):
        return "; for a position: --offset start"
    if text in ("end", "latest", "stored") or text.lstrip("-").isdigit():
        return f"; for a position: --offset {'end' if text == 'latest' else text}"
    if text == "name" or text.partition("=")[0] in ("jsonpath", "custom-columns", "go-template"):
        return "; for one field: -o tsv --no-headers --columns FIELD"
    return ""


def invalid_meant(command: str, sentence: str) -> str:
    """The end of a sentence about a value that is no value of an argument or an option."""
    start, hint = INVALID.get(command, ("?", ""))
    return f"; {hint}" if start in sentence else ""


def missing_meant(command: str) -> str:
    """The end of a sentence about a missing argument: where its values are found."""
    return f"; {MISSING[command]}" if command in MISSING else ""


def thing_meant(cli: "Cli", sentence: str) -> str:
    """The end of a sentence about a missing topic, group or store: the most similar one."""
    if any("://" in folder for folder in cli.given.get("store", ())):
        return f"; {A_FOLDER}"
    found = _MISSING.match(sentence)
    if found is None:
        return ""
    habit = extra_meant("", cli.words)
    if habit:
        return habit
    from .completers import groups, topics

    known: Iterable[tuple[str, str]] = (topics if found[1] == "topic" else groups)(cli)
    names = [name for name, _ in known if name != found[2]]
    queue = _QUEUE.match(found[2])
    if queue is not None and queue[1] in names:
        return f"; did you mean '{queue[1]}' with -Q {queue[2]}?"
    several = re.split(r"[,|]", found[2])
    if len(several) > 1 and set(several) <= set(names):
        return f"; did you mean {' '.join(several)!r}?"
    near = get_close_matches(found[2], names, 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""
