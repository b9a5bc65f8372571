"""Suggestions for a name that does not exist."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from rmqctl.cli.tree import TREE, CommandGroup, CommandRef

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_MISSING: Final = re.compile(r"(topic|group) (\S+) (?:does not exist|has no )")
OTHERS: Final = {
    "send": "produce",
    "publish": "produce",
    "pub": "produce",
    "read": "consume",
    "subscribe": "consume",
    "sub": "consume",
    "tail": "consume",
    "grep": "message search",
    "ls": "topic list",
    "topics": "topic list",
    "groups": "group list",
    "reset": "offset reset",
    "seek": "offset reset",
    "fsck": "store fsck",
    "check": "store fsck",
}
"""Names of other tools."""
BELOW_NOUNS: Final[Mapping[str, Mapping[str, str]]] = {
    "topic": {
        "rm": "topic delete",
        "remove": "topic delete",
        "get": "topic describe",
        "info": "topic describe",
        "show": "topic describe",
        "add": "topic create",
    },
    "group": {
        "rm": "group delete",
        "remove": "group delete",
        "get": "group describe",
        "info": "group describe",
        "show": "group describe",
        "members": "group clients",
        "pause": "group alter GROUP --no-consume-enable",
        "resume": "group alter GROUP --consume-enable",
        "seek": "offset reset",
        "diff": "offset diff",
        "lag": "lag show",
    },
    "dlq": {
        "replay": "dlq redrive",
        "retry": "dlq redrive",
        "requeue": "dlq redrive",
        "resend": "dlq redrive",
        "purge": "dlq ack",
        "get": "dlq show",
    },
    "store": {
        "check": "store fsck",
        "verify": "store fsck",
        "backup": "store snapshot",
        "create": "store init",
    },
    "message": {
        "count": "message stats",
        "find": "message search",
        "list": "consume TOPIC -e",
        "show": "message get",
        "skip": "offset reset -g GROUP -t TOPIC:QUEUE --shift-by 1",
    },
    "retry": {
        "list": "retry browse",
        "skip": "retry dead",
    },
    "config": {"list": "config show"},
    "offset": {
        "get": "offset list",
        "show": "offset inspect",
        "seek": "offset reset",
        "set": "offset reset --to-offset",
        "skip": "offset reset --shift-by 1",
    },
    "lag": {"list": "lag show"},
}
"""Words that people try below a noun, and the command that does it."""
OPTIONS: Final[Mapping[str, str]] = {
    "--since": "--from",
    "--until": "--to",
    "--tail": "--last",
    "--page": "--limit",
    "--max-messages": "--count",
    "--partition": "--queue",
    "--partitions": "--queues",
    "--from-beginning": "--offset start",
}
"""Options of other tools."""


def command_meant(name: str, table: Mapping[str, CommandRef | CommandGroup]) -> str:
    """The end of a sentence about an unknown command, or nothing."""
    if table is not TREE:
        noun = next(
            (noun for noun, entry in TREE.items() if getattr(entry, "verbs", None) is table), ""
        )
        other = BELOW_NOUNS.get(noun, {}).get(name)
        if other is not None:
            return f", did you mean {other!r}?"
        near = get_close_matches(name, table, 1, 0.6)
        if not near and noun == "lag":
            return f", did you mean 'lag show {name}'?"
        return f", did you mean {near[0]!r}?" if near else ""
    meant = [*_with_verb(name), *([OTHERS[name]] if name in OTHERS else [])]
    if meant:
        return f", did you mean {' or '.join(map(repr, dict.fromkeys(meant)))}?"
    from rmqctl.help.mqadmin.translate import COMMANDS

    old = {known.lower(): known for known in COMMANDS}
    if name.lower() in old:
        return f", mqadmin's is 'rmqctl mqadmin {old[name.lower()]}'"
    near = get_close_matches(name, table, 1, 0.6)
    return f", did you mean {near[0]!r}?" if near else ""


def _with_verb(name: str) -> Iterator[str]:
    """Commands whose verb alone was typed; not the verbs that every noun has."""
    found = [
        f"{noun} {name}"
        for noun, entry in TREE.items()
        if isinstance(entry, CommandGroup) and name in entry.verbs
    ]
    if len(found) <= 3:
        yield from found


def option_meant(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown option of another tool, or nothing."""
    other = OPTIONS.get(name)
    if other is None or other.split()[0] not in known:
        return ""
    return f"; the option is {other} here"


def thing_meant(cli: "Cli", sentence: str) -> str:
    """The end of a sentence about a missing topic or group: the most similar one in the store."""
    found = _MISSING.match(sentence)
    if found is None:
        return ""
    from .completers import groups, topics

    known: Iterable[tuple[str, str]] = (topics if found[1] == "topic" else groups)(cli)
    names = [name for name, _ in known if name != found[2]]
    near = get_close_matches(found[2], names, 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""
