"""Translates an mqadmin command line to rmqctl command lines."""

import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from rmqctl.errors import CliError, UsageProblem

from .brokers import BROKERS
from .given import Lines, MqadminOptions, Old, parse
from .messages import MESSAGES
from .topics_and_groups import TOPICS_AND_GROUPS

COMMANDS: Final[Mapping[str, Old]] = {**TOPICS_AND_GROUPS, **MESSAGES, **BROKERS}
"""All 56 commands that mqadmin 4.9.8 registers."""

_FOLDED: Final = {name.lower(): name for name in COMMANDS}


class Translation(NamedTuple):
    """The commands to run instead, and the given options that are ignored."""

    lines: Lines
    ignored: list[str]


def known_name(name: str) -> str:
    """mqadmin's spelling of a command; case is ignored, as by mqadmin."""
    found = _FOLDED.get(name.lower())
    if found is None:
        near = get_close_matches(name.lower(), _FOLDED, 1, 0.6)
        hint = f", did you mean {_FOLDED[near[0]]!r}?" if near else ""
        raise UsageProblem(f"mqadmin 4.9 has no command {name!r}{hint}")
    return found


def own_words(name: str, words: Sequence[str]) -> list[str]:
    """The rmqctl options in the words of a call, which name the store."""
    old = COMMANDS[name]
    return [] if isinstance(old.new, str) else parse(name, old, words)[1]


def translate(name: str, words: Sequence[str], root: Path | None = None) -> Translation:
    """The new form of a call. The store at ``root`` decides whether to create or to change.

    CliError (1) if there is no counterpart; it says why.
    """
    old = COMMANDS[name]
    if isinstance(old.new, str):
        raise CliError(f"mqadmin {name} has no counterpart here: {old.new}")
    values, own = parse(name, old, words)
    given = _given(name, values, root)
    ignored = [
        f"-{letter} ({old.specs[letter][0]})"
        for letter in values
        if letter in old.ignored or letter == "n" or _is_address(old, letter)
    ]
    return Translation([_with_own(line, own) for line in old.new(given)], ignored)


def sample(name: str) -> str:
    """The new form of a command, with placeholders for required values."""
    old = COMMANDS[name]
    assert not isinstance(old.new, str)
    values = {
        letter: "6" if long in _NUMBERS else long.upper()
        for letter, (long, _, required) in old.specs.items()
        if required
    }
    return "; ".join(shlex.join(line) for line in old.new(MqadminOptions(values)))


_NUMBERS: Final = {"queueId", "index", "offset", "queue", "perm"}


def _is_address(old: Old, letter: str) -> bool:
    """Whether an option names a broker or cluster; the store is the only one."""
    return old.specs[letter][0].startswith(("broker", "cluster")) and letter in "bc"


def _with_own(line: list[str], own: list[str]) -> list[str]:
    place = line.index("--") if "--" in line else len(line)
    return [*line[:place], *own, *line[place:]]


def _given(name: str, values: Mapping[str, str], root: Path | None) -> MqadminOptions:
    """The options, and the facts of the store that the translation needs."""
    if root is None or not root.is_dir():
        return MqadminOptions(values)
    if name == "queryCq":
        from storage.detect import detect_config
        from storage.format.cq_unit import CQ_STORE_UNIT_SIZE

        length = detect_config(root).mapped_file_size_consume_queue
        return MqadminOptions(values, queue_file_units=length // CQ_STORE_UNIT_SIZE)
    if name in {"updateTopic", "updateSubGroup"}:
        from broker.embedded.broker import EmbeddedBroker

        with EmbeddedBroker.open(root, read_only=True) as broker:
            return MqadminOptions(values, frozenset(broker.topics()), frozenset(broker.groups()))
    return MqadminOptions(values)
