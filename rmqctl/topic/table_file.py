"""Topics to create, from a file: output of ``-o``, a file of RocketMQ, or plain names.

The format follows from the suffix: ``.json`` (an array, an object, or a whole topics.json),
``.jsonl``, ``.csv``, ``.yaml``. For other files, and standard input, it follows from the first
characters: JSON, the header of a CSV, or one name per line, without blank lines and lines with a #.
Members may have RocketMQ's names (``readQueueNums``) or those here (``read_queue_nums``,
``read_queues``).
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from rmqctl.cli.given_file import read_given
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.parse.json_texts import parse_given
from rmqctl.parse.near_names import did_you_mean
from storage.format.java_numbers import parse_digits

_TABLE: Final = "topicConfigTable"
_NAMES: Final = {
    "topic_name": "topic",
    "name": "topic",
    "read_queues": "read_queue_nums",
    "write_queues": "write_queue_nums",
}
_ENDINGS: Final = frozenset({".json", ".jsonl", ".csv", ".yaml", ".yml"})
_NUMBERS: Final = frozenset({"queues", "read_queue_nums", "write_queue_nums", "perm"})
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False, "": None}
_PASSED_OVER: Final = frozenset(
    {
        *("topic_filter_type", "topic_sys_flag", "attributes", "kind", "messages", "created"),
        *("first_timestamp", "last_timestamp", "groups"),
    }
)
_KNOWN: Final = _NUMBERS | _PASSED_OVER | {"topic", "order"}
_ELSEWHERE: Final = {
    **dict.fromkeys(("partitions", "num_partitions", "queue_nums"), "queues"),
    **dict.fromkeys(("permission", "permissions"), "perm"),
    **dict.fromkeys(("ordered", "order_topic"), "order"),
}
"""Names of other tools, and the names here."""


class WantedTopic(NamedTuple):
    """One topic of a file; None is a value that the file does not have."""

    where: str
    """Its line or entry, for errors."""
    topic: str
    read_queue_nums: int | None = None
    write_queue_nums: int | None = None
    perm: int | None = None
    order: bool | None = None


def wanted_topics(file: str) -> list[WantedTopic]:
    """All topics of a file, ``-`` for standard input. UsageProblem names the invalid entry.

    NotFound (3) without the file, UsageProblem (2) for an unreadable one.
    """
    try:
        text = read_given(file, stdin=True).decode("utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}") from None
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{file} is not UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}") from error
    found: list[WantedTopic] = []
    suffix = Path(file).suffix.lower()
    if suffix not in _ENDINGS:
        suffix = _kind_of(text)
    for where, members in _entries(text, suffix, file):
        found.append(_topic(where, members))
    if not found:
        raise UsageProblem(f"{file} names no topic")
    return found


def _kind_of(text: str) -> str:
    """The suffix that fits a text."""
    first = text.lstrip().partition("\n")[0].strip()
    if first.startswith("["):
        return ".json"
    if first.startswith("{"):
        return ".jsonl" if first.endswith("}") and len(first) > 2 else ".json"
    columns = {column.strip().strip('"') for column in first.split(",")}
    return ".csv" if columns & {"topic", "topic_name", "topicName"} else ""


def _entries(text: str, suffix: str, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        if suffix == ".csv":
            rows = csv.DictReader(text.splitlines(), strict=True)
            names = rows.fieldnames or ()
            if len(set(names)) < len(names):
                raise UsageProblem(f"{file} has a column twice in its header")
            for number, row in enumerate(rows, 2):
                yield f"{file} line {number}", dict(row)
        elif suffix == ".jsonl":
            for number, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    yield f"{file} line {number}", parse_given(line)
        elif suffix in {".json", ".yaml", ".yml"}:
            yield from _of_document(_loaded(text, suffix), file)
        else:
            for number, line in enumerate(text.splitlines(), 1):
                name = line.partition("#")[0].strip()
                if name:
                    yield f"{file} line {number}", {"topic": name}
    except (ValueError, csv.Error) as error:
        raise UsageProblem(f"{file} is malformed: {' '.join(str(error).split())}") from error


def _loaded(text: str, suffix: str) -> Any:
    if suffix == ".json":
        from storage.format.fastjson import loads

        return loads(text, once=True)
    from rmqctl.parse.yaml_texts import parse_yaml

    return parse_yaml(text)


def _of_document(document: Any, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(document, dict) and isinstance(document.get(_TABLE), dict):
        from storage.configs.topics import system_topics
        from storage.format.message import is_system_topic

        own = system_topics("DefaultCluster", "broker-a")
        for name, row in document[_TABLE].items():
            # Topics that every broker creates exist already.
            if not (is_system_topic(str(name)) or name in own):
                yield f"{file} topic {name}", row
        return
    for number, row in enumerate(document if isinstance(document, list) else [document], 1):
        yield f"{file} entry {number}", row


def _topic(where: str, members: Any) -> WantedTopic:
    if isinstance(members, str):
        members = {"topic": members}
    if not isinstance(members, dict):
        raise UsageProblem(f"{where}: {members!r} is neither a name nor an object")
    values: dict[str, Any] = {}
    for name, value in members.items():
        key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower().replace("-", "_")
        key = _NAMES.get(key, key)
        if name is None:
            raise UsageProblem(f"{where}: the line has more columns than the header")
        if key not in _KNOWN:
            hint = did_you_mean(key, _KNOWN - _PASSED_OVER, _ELSEWHERE)
            raise UsageProblem(f"{where}: a topic has no {name!r}{hint}")
        if key in _PASSED_OVER or value in (None, ""):
            continue
        if key in values:
            raise UsageProblem(f"{where}: {key} is given twice, also as {name!r}")
        if key in _NUMBERS:
            values[key] = _number(where, key, value)
        elif key == "order":
            values[key] = _flag(where, value)
        else:
            values[key] = str(value)
    if "topic" not in values:
        raise UsageProblem(f"{where}: topic is missing")
    both = values.pop("queues", None)
    for key in ("read_queue_nums", "write_queue_nums"):
        values.setdefault(key, both)
    return WantedTopic(where, **values)


def _number(where: str, key: str, value: Any) -> int:
    text = str(value)
    number = None if isinstance(value, bool) else parse_digits(text)
    if number is None:
        raise UsageProblem(f"{where}: {key} {text!r} is not a number")
    return number


def _flag(where: str, value: Any) -> bool | None:
    text = str(value).lower()
    if text not in _FLAGS:
        raise UsageProblem(f"{where}: order {value!r} is neither true nor false")
    return _FLAGS[text]
