"""What a value on the command line may be: names out of the store, or a fixed choice.

Called while the user waits with a finger on the Tab key: read only, at most 500 items and a few
small files, and silent about whatever can not be read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rmqctl.context import Cli
from rmqctl.output.view import Format

MOST_ITEMS: Final = 500
_LARGEST_FILE: Final = 4 << 20
_TOPIC_NAME: Final = re.compile(r'"topicName"\s*:\s*"([^"\\]+)"')
_OFFSET_KEY: Final = re.compile(r'"([^"@\\]+)@([^"\\]+)"\s*:\s*\{')
_GROUP_NAME: Final = re.compile(r'"groupName"\s*:\s*"([^"\\]+)"')

Completer = Callable[[Cli], Iterable[tuple[str, str]]]


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _folders(path: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in path.iterdir())
    except OSError:
        return []


def topics(cli: Cli) -> Iterator[tuple[str, str]]:
    """Topics of the topics file and of the queue folders; retries and system topics last."""
    store = cli.store.path
    names = set(_TOPIC_NAME.findall(_read(store / "config" / "topics.json")))
    names.update(_folders(store / "consumequeue"))
    for name in sorted(names, key=lambda name: (name.startswith(("%", "RMQ_SYS_")), name)):
        yield name, ""


def groups(cli: Cli) -> Iterator[tuple[str, str]]:
    """Groups of the offsets file, of the subscription groups and of the retry topics."""
    config = cli.store.path / "config"
    offsets = _OFFSET_KEY.findall(_read(config / "consumerOffset.json"))
    names = {group for _, group in offsets}
    names.update(_GROUP_NAME.findall(_read(config / "subscriptionGroup.json")))
    for folder in _folders(cli.store.path / "consumequeue"):
        if folder.startswith("%RETRY%"):
            names.add(folder.removeprefix("%RETRY%"))
    for name in sorted(names):
        yield name, ""


def changes(cli: Cli) -> Iterator[tuple[str, str]]:
    """Changes of the journal's last file, newest first."""
    from storage.configs.journal import Journal
    from storage.configs.sealed_json import unseal

    for path in Journal(cli.store.path).files()[-1:]:
        for line in reversed(_read(path).splitlines()):
            entry = unseal(line.encode())
            if entry is not None:
                about = {str(move["group"]) for move in entry.get("moves", ())}
                about |= {str(entry[name]) for name in ("group", "topic") if name in entry}
                yield str(entry["change_id"]), " ".join([str(entry["command"]), *sorted(about)])


def contexts(cli: Cli) -> Iterator[tuple[str, str]]:
    """Contexts of the settings files."""
    for layer in cli.settings.layers():
        for name in layer.contexts:
            yield name, layer.origin


def settings(_cli: Cli) -> Iterator[tuple[str, str]]:
    """The settings that a file may hold."""
    from rmqctl.settings import KEYS

    for name, (_, meaning) in KEYS.items():
        yield name, meaning


def _choice(*values: tuple[str, str]) -> Completer:
    return lambda cli: values


COMPLETERS: Final[Mapping[str, Completer]] = {
    "topic": topics,
    "topics": topics,
    "group": groups,
    "groups": groups,
    "change_id": changes,
    "context": contexts,
    "context_name": contexts,
    "setting": settings,
    "output": lambda cli: [(form.value, "") for form in Format],
    "color": _choice(("auto", ""), ("always", ""), ("never", "")),
    "progress": _choice(("auto", ""), ("plain", ""), ("none", "")),
    "shell": _choice(("bash", ""), ("zsh", ""), ("fish", ""), ("powershell", "")),
    "input": _choice(
        ("text", "a body a line"),
        ("jsonl", "what -o jsonl prints"),
        ("csv", "columns named like the JSON keys"),
        ("hex", "a body a line, in hex"),
    ),
    "body": _choice(("text", ""), ("json", ""), ("hex", ""), ("base64", ""), ("none", "")),
    "offset": _choice(
        ("start", "the first message stored"),
        ("end", "after the last message"),
        ("stored", "the group's progress"),
        ("-10", "the last ten"),
        ("@-1h", "an hour ago"),
    ),
    "at": _choice(
        ("stored", "the group's progress"),
        ("start", "the first message stored"),
        ("end", "after the last message"),
        ("@-1h", "an hour ago"),
    ),
    "source": _choice(
        ("file", "what holds"),
        ("bak", "what Java's file held before"),
        ("journal", "where the last change put it"),
    ),
    "from_where": _choice(("last", ""), ("first", ""), ("timestamp", "")),
    "only": _choice(("log", ""), ("queue", ""), ("index", ""), ("offset", ""), ("config", "")),
    "fail_on": _choice(("error", ""), ("warning", "")),
}
"""By the name of the parameter; what is not here is completed as a file name by the shell."""
