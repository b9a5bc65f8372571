"""consumerOffset.json: how far each consumer group is (ConsumerOffsetManager of 4.9).

    {"offsetTable":{"topic@group":{queueId: next offset to consume, ...}}}

A broker with ``enableLmq`` keeps lmqConsumerOffset.json instead, with LMQ groups (``%LMQ%...``) in
a member of their own: ``"lmqOffsetTable":{"topic@group": offset}``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from storage.files.fs import FileSystem
from storage.format.java_numbers import java_int, java_long
from storage.format.message import LMQ_PREFIX
from storage.format.names import CONFIG, exact_str
from storage.format.shapes import MAX_INT, MAX_LONG

from .config_file import ConfigFile, JsonObject, ident_of

CONSUMER_OFFSET_FILE: Final = "consumerOffset.json"
LMQ_CONSUMER_OFFSET_FILE: Final = "lmqConsumerOffset.json"
TOPIC_GROUP_SEPARATOR: Final = "@"

OffsetTable = dict[str, dict[int, int]]
"""``topic@group`` to queue id to the next offset to consume."""


def topic_at_group(topic: str, group: str) -> str:
    """Make the key of a topic's progress in a group."""
    return f"{exact_str(topic)}{TOPIC_GROUP_SEPARATOR}{exact_str(group)}"


def split_topic_at_group(key: str) -> tuple[str, str] | None:
    """Take a key apart into topic and group; None if it is no such key.

    A group has no ``@``, so the last one separates (an LMQ topic may have one).
    """
    topic, separator, group = key.rpartition(TOPIC_GROUP_SEPARATOR)
    return (topic, group) if separator and topic and group else None


def consumer_offset_file(root: Path, fs: FileSystem | None = None) -> ConfigFile:
    """Give the file that Java keeps progress in: the lmq one if it alone exists, or is newer."""
    path = root / CONFIG / CONSUMER_OFFSET_FILE
    lmq_path = root / CONFIG / LMQ_CONSUMER_OFFSET_FILE
    lmq, plain = ident_of(lmq_path), ident_of(path)
    if lmq is not None and (plain is None or lmq.mtime_ns > plain.mtime_ns):
        path = lmq_path
    return ConfigFile(path, fs, check=decode_offsets)


def load_consumer_offsets(root: Path) -> OffsetTable:
    """Read the committed offsets as Java's files have them. Raises CorruptFileError."""
    return decode_offsets(consumer_offset_file(root).load().document)


def decode_offsets(document: JsonObject) -> OffsetTable:
    """Take the offsets out of a document, those of LMQs as queue 0.

    Queue ids below 0 are left out: no queue has one, and Java writes whatever a client commits.
    Raises ValueError or TypeError for what Java could not read either.
    """
    table: OffsetTable = {}
    for key, queues in _member(document, "offsetTable").items():
        if not isinstance(queues, dict):
            raise ValueError(f"the offsets of {key!r} are no object")
        row = {
            queue if type(queue) is int and 0 <= queue <= MAX_INT else java_int(queue): (
                offset if type(offset) is int and 0 <= offset <= MAX_LONG else java_long(offset)
            )
            for queue, offset in queues.items()
        }
        if min(row, default=0) < 0:
            row = {queue: offset for queue, offset in row.items() if queue >= 0}
        table[str(key)] = row
    for key, offset in _member(document, "lmqOffsetTable").items():
        table.setdefault(str(key), {})[0] = java_long(offset)
    return table


def encode_offsets(document: JsonObject, table: OffsetTable) -> JsonObject:
    """Put offsets into a document as Java writes it; other members and the order of keys stay.

    Queue ids ascend, as in Java's hash map of small ints. LMQ groups go to ``lmqOffsetTable`` if
    the document has one.
    """
    light = document.get("lmqOffsetTable")
    lmq: JsonObject = {}
    rows: JsonObject = {}
    known = [*_member(document, "offsetTable"), *_member(document, "lmqOffsetTable")]
    for key in dict.fromkeys([*(str(key) for key in known if str(key) in table), *table]):
        parts = split_topic_at_group(key)
        if isinstance(light, dict) and parts is not None and parts[1].startswith(LMQ_PREFIX):
            lmq.update((key, offset) for offset in table[key].values())
        else:
            rows[key] = dict(sorted(table[key].items()))
    result = {**document, "offsetTable": rows}
    if isinstance(light, dict):
        result["lmqOffsetTable"] = lmq
    return result


def _member(document: JsonObject, name: str) -> dict[Any, Any]:
    member = document.get(name)
    if member is None:
        return {}
    if not isinstance(member, dict):
        raise ValueError(f"{name} is no object")
    return member
