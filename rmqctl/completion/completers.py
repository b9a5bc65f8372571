"""Completion of values on the command line: names from the store, or a fixed choice.

Called when the user presses Tab: reads a few small files, gives at most 500 items, writes nothing,
and ignores files that cannot be read.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rmqctl.cli.context import Cli
from rmqctl.output.view import Format
from storage.parse.time_forms import TIME_FORMS

MOST_ITEMS: Final = 500
_LARGEST_FILE: Final = 4 << 20
_TOPIC_NAME: Final = re.compile(r'"topicName"\s*:\s*"([^"\\]+)"')
_OFFSET_KEY: Final = re.compile(r'"([^"@\\]+)@([^"\\]+)"\s*:\s*\{')
_GROUP_NAME: Final = re.compile(r'"groupName"\s*:\s*"([^"\\]+)"')

_OWN: Final = ("%RETRY%", "%DLQ%", "RMQ_SYS_", "rmq_sys_", "CID_RMQ_SYS_")
"""Beginnings of topics and groups of RocketMQ itself."""

Completer = Callable[[Cli], Iterable[tuple[str, str]]]


def _read(path: Path) -> str:
    """The text of a small file; nothing of anything else. A pipe does not block."""
    try:
        # Not read_bounded: completion imports nothing of the storage package.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE:
                return ""
            return file.read(_LARGEST_FILE).decode("utf-8", "replace")
    except OSError:
        return ""


def _folders(path: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in path.iterdir())
    except OSError:
        return []


def topics(cli: Cli) -> Iterator[tuple[str, str]]:
    """Topics of the topics file and of the queue folders; retries and system topics only once
    their beginning is typed."""
    store = cli.store.path
    names = set(_TOPIC_NAME.findall(_topics_file(store)))
    names.update(_folders(store / "consumequeue"))
    hidden = set() if cli.given.get("completed_begin") else _system_names()
    for name in sorted(names, key=lambda name: (name.startswith(_OWN), name)):
        if not hidden or not (name in hidden or name.startswith(_OWN)):
            yield name, ""


def _system_names() -> set[str]:
    """Topics and groups that every broker makes."""
    from broker.config import BrokerConfig
    from storage.configs.subscription_groups import system_groups
    from storage.configs.topics import system_topics

    config = BrokerConfig()
    return {*system_topics(config.broker_cluster_name, config.broker_name), *system_groups()}


def groups(cli: Cli) -> Iterator[tuple[str, str]]:
    """Groups of the offsets file, of the subscription groups and of the retry topics; those of the
    system only once their beginning is typed."""
    config = cli.store.path / "config"
    offsets = _OFFSET_KEY.findall(_read(config / "consumerOffset.json"))
    names = {group for _, group in offsets}
    names.update(_GROUP_NAME.findall(_read(config / "subscriptionGroup.json")))
    for folder in _folders(cli.store.path / "consumequeue"):
        if folder.startswith("%RETRY%"):
            names.add(folder.removeprefix("%RETRY%"))
    hidden = set() if cli.given.get("completed_begin") else _system_names()
    for name in sorted(names):
        if not hidden or not (name in hidden or name.startswith(_OWN)):
            yield name, ""


def changes(cli: Cli) -> Iterator[tuple[str, str]]:
    """Changes in the journal's last file, newest first."""
    from storage.configs.checksummed_json import unseal
    from storage.configs.journal import Journal

    for path in Journal(cli.store.path).files()[-1:]:
        for line in reversed(_read(path).splitlines()):
            entry = unseal(line.encode())
            if entry is not None:
                about = {str(move["group"]) for move in entry.get("moves", ())}
                about |= {str(entry[name]) for name in ("group", "topic") if name in entry}
                yield str(entry["change_id"]), " ".join([str(entry["command"]), *sorted(about)])


def contexts(cli: Cli) -> Iterator[tuple[str, str]]:
    """Contexts in the settings files."""
    for layer in cli.settings.layers():
        for name in layer.contexts:
            yield name, layer.origin


def queues(cli: Cli) -> Iterator[tuple[str, str]]:
    """Queues of the topic that the line names before."""
    topic = cli.given.get("completed_topic")
    if not isinstance(topic, str) or "/" in topic:
        return
    store = cli.store.path
    numbers = {int(name) for name in _folders(store / "consumequeue" / topic) if name.isdecimal()}
    name = re.escape(topic)
    found = re.search(rf'\{{[^{{}}]*"topicName"\s*:\s*"{name}"[^{{}}]*\}}', _topics_file(store))
    for count in re.findall(r'"(?:read|write)QueueNums"\s*:\s*(\d+)', found[0] if found else ""):
        numbers.update(range(min(int(count), MOST_ITEMS)))
    for number in sorted(numbers):
        yield str(number), ""


def _topics_file(store: Path) -> str:
    return _read(store / "config" / "topics.json")


def settings(_cli: Cli) -> Iterator[tuple[str, str]]:
    """The settings that a settings file may have."""
    from rmqctl.cli.settings import KEYS

    for name, (_, meaning) in KEYS.items():
        yield name, meaning


def _old_names(_cli: Cli) -> Iterator[tuple[str, str]]:
    from rmqctl.help.mqadmin.translate import COMMANDS

    for name, old in COMMANDS.items():
        yield name, "no counterpart" if isinstance(old.new, str) else ""


def old_options(name: str) -> Iterator[tuple[str, str]]:
    """The options of an mqadmin command. UsageProblem if there is no such command."""
    from rmqctl.help.mqadmin.translate import COMMANDS, known_name

    for letter, (long, _, required) in COMMANDS[known_name(name)].specs.items():
        text = long + (" (required)" if required else "")
        yield f"-{letter}", text
        yield f"--{long}", text


def _terms(_cli: Cli) -> Iterator[tuple[str, str]]:
    from rmqctl.help.terms import all_terms

    for term in all_terms():
        if " " not in term.term and term.kind != "field":
            yield term.term, term.kind


def _sheets(_cli: Cli) -> Iterator[tuple[str, str]]:
    from rmqctl.help.cheats import SHEETS

    for name, sheet in SHEETS.items():
        yield name, sheet.about


def _commands(cli: Cli) -> Iterator[tuple[str, str]]:
    """The commands, or the verbs of the noun that the line names before."""
    from rmqctl.cli.tree import TREE, CommandGroup

    words = cli.given.get("completed_words", ())
    if not words:
        for name, entry in TREE.items():
            yield name, entry.help
        return
    noun = TREE.get(words[0])
    if isinstance(noun, CommandGroup) and len(words) == 1:
        for name, verb in noun.verbs.items():
            yield name, verb.help


def _setting_values(cli: Cli) -> Iterable[tuple[str, str]]:
    """The values of the setting that the line names before, if it has fixed ones."""
    from rmqctl.cli.settings import KEYS

    name = cli.given["completed_words"][0]
    if name in KEYS and KEYS[name][0] is bool:
        return [("true", ""), ("false", "")]
    return (
        COMPLETERS[name](cli)
        if name in {"output", "color", "progress", "log_format", "context"}
        else ()
    )


def _delay_levels(cli: Cli) -> Iterator[tuple[str, str]]:
    """The levels of the store; those of a new store where there is none."""
    from storage.detect import detect_config
    from storage.errors import StoreError
    from storage.format.delay import DEFAULT_DELAY_LEVELS, parse_delay_levels
    from storage.parse.durations import format_duration

    try:
        table = detect_config(cli.store.path).message_delay_level
    except StoreError:
        table = DEFAULT_DELAY_LEVELS
    for level, delay in enumerate(parse_delay_levels(table), 1):
        yield str(level), format_duration(delay)


def _places(cli: Cli) -> Iterable[tuple[str, str]]:
    """The screens of the console, or what the screen that the line names before takes."""
    from rmqctl.console.screens.table import ALIASES, TABLE

    words = cli.given["completed_words"]
    if not words:
        return [(name, screen.help) for name, screen in TABLE.items()]
    name = ALIASES.get(words[0], words[0])
    for near in (name, name.removesuffix("s")):  # `groups billing` is `group billing`
        takes = (*TABLE[near].names, *TABLE[near].optional) if near in TABLE else ()
        if len(words) <= len(takes):
            cli.given["completed_topic"] = words[1] if len(words) > 1 else None
            completer = _NAMED_PLACES.get(takes[len(words) - 1])
            return () if completer is None else completer(cli)
    return ()


def _themes(_cli: Cli) -> Iterator[tuple[str, str]]:
    from rmqctl.console.themes import NAMES

    for name in NAMES:
        yield name, ""


def broker_settings(_cli: Cli) -> Iterator[tuple[str, str]]:
    """The settings of a store and its broker that can be changed."""
    from dataclasses import fields

    from broker.config import BrokerConfig
    from storage.config import FIXED_FIELDS, StoreConfig

    for kind in (StoreConfig, BrokerConfig):
        for field in fields(kind):
            if field.name not in FIXED_FIELDS:
                yield field.name, str(field.default)


def _choice(*values: tuple[str, str]) -> Completer:
    return lambda cli: values


_TIMES: Final = _choice(*((text, form.meaning) for form in TIME_FORMS for text in form.completions))

_NAMED_PLACES: Final[Mapping[str, Completer]] = {
    "GROUP": groups,
    "TOPIC": topics,
    "QUEUE": queues,
    "CHANGE-ID": changes,
}
"""By what a screen of the console takes."""

_BODIES: Final = _choice(("text", ""), ("json", ""), ("hex", ""), ("base64", ""), ("none", ""))

_FORMS: Final = _choice(
    ("jsonl", "all fields, one message per line"),
    ("csv", "all fields, as cells"),
    ("parquet", "for analytics"),
    ("raw", "the log's records, byte by byte"),
)

COMPLETERS: Final[Mapping[str, Completer]] = {
    "topic": topics,
    "topics": topics,
    "trace_topic": topics,
    "group": groups,
    "groups": groups,
    "to_group": groups,
    "offset diff first": groups,
    "offset diff second": groups,
    "queue": queues,
    "name": _old_names,
    "term": _terms,
    "sheet": _sheets,
    "man command": _commands,
    "config set value": _setting_values,
    "console words": _places,
    "theme": _themes,
    "delay_level": _delay_levels,
    "change_id": changes,
    "context": contexts,
    "context_name": contexts,
    "setting": settings,
    "action": _choice(("get", "show settings"), ("set", "change one")),
    "setting_words": broker_settings,
    "output": lambda cli: [(form.value, "") for form in Format],
    "color": _choice(("auto", ""), ("always", ""), ("never", "")),
    "progress": _choice(("auto", ""), ("plain", ""), ("none", "")),
    "log_format": _choice(("text", ""), ("json", "")),
    "shell": _choice(("bash", ""), ("zsh", ""), ("fish", ""), ("powershell", "")),
    "input_format": _choice(
        ("text", "one body per line"),
        ("jsonl", "what -o jsonl prints"),
        ("csv", "columns named like the JSON keys"),
        ("hex", "one body per line, in hex"),
    ),
    "consume body": _BODIES,
    "offset inspect body": _BODIES,
    "offset": _choice(
        ("start", "the first stored message"),
        ("end", "after the last message"),
        ("stored", "the group's progress"),
        ("-10", "the last ten"),
        ("@-1h", "an hour ago"),
    ),
    "at": _choice(
        ("stored", "the group's progress"),
        ("start", "the first stored message"),
        ("end", "after the last message"),
        ("@-1h", "an hour ago"),
    ),
    "source": _choice(
        ("file", "the current offsets"),
        ("bak", "the previous version of Java's file"),
        ("journal", "the offsets of the last change"),
    ),
    **dict.fromkeys(
        (
            *("from", "to", "since", "as_of", "compare", "timestamp", "to_datetime"),
            "consume_timestamp",
        ),
        _TIMES,
    ),
    "boundary": _choice(
        ("lower", "the first message at or after the time"),
        ("upper", "the last message at or before the time"),
        ("nearest49", "the nearest message, as RocketMQ 4.9"),
    ),
    "dlq groups by": _choice(
        ("reason", "the failure"),
        ("tag", ""),
        ("key", ""),
        ("host", "the producer's"),
        ("hour", "when they became dead letters"),
        ("age", ""),
        ("shape", "the reason without numbers, or the body's form"),
    ),
    "topic stats by": _choice(("topic", ""), ("queue", ""), ("hour", "")),
    "message decode-id kind": _choice(
        ("offset", "the broker's address and a log position"),
        ("unique", "the client's address, process and time"),
    ),
    "message search fields": _choice(
        ("body", ""), ("tags", ""), ("keys", ""), ("properties", "tags and keys, too")
    ),
    "message stats by": _choice(
        ("topic", ""),
        ("queue", ""),
        ("tag", ""),
        ("key", ""),
        ("host", "the producer's"),
        ("attempts", "how often they were sent back"),
        ("minute", ""),
        ("hour", ""),
        ("day", ""),
        ("json.", "a field of JSON bodies"),
        ("property.", "a user property"),
        ("hour,tag", "a time span and another"),
    ),
    "store du by": _choice(
        ("topic", ""),
        ("kind", "messages, index, reserved ..."),
        ("group", "its retries and dead letters"),
        ("day", ""),
    ),
    "message export form": _FORMS,
    "message import form": _FORMS,
    "dlq redrive resume": _choice(("last", "the newest run of the group")),
    "target": _choice(("origin", "the original topic"), ("retry", "the group's retry topic")),
    "perm": _choice(("6", "read and write"), ("4", "read"), ("2", "write")),
    "preview": _choice(("full", ""), ("short", "")),
    "from_where": _choice(("last", ""), ("first", ""), ("timestamp", "")),
    "only": _choice(("log", ""), ("queue", ""), ("index", ""), ("offset", ""), ("config", "")),
    "fail_on": _choice(("error", ""), ("warning", "")),
    "store fsck start": _TIMES,
    "store rebuild what": _choice(("queue", "consume queues"), ("index", "the key index")),
    "store dump form": _choice(
        ("fields", "decoded"), ("hex", "bytes with the names of their fields")
    ),
    "store tail start": _choice(
        ("start", "the first stored record"), ("end", "new records only"), ("-15m", "")
    ),
}
"""By the name of the parameter, perhaps after the name of its command. A parameter with fixed
choices needs no entry. Any other value is completed by the shell as a file name.
"""
