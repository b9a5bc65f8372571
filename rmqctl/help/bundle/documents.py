"""Documents of a store (settings, progress, journal) written anew, with pseudonyms in them.

No byte of a file is copied: a file is parsed, and what is in it is written again. So what a damaged
file holds by accident, such as a piece of a message, does not get into a bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rmqctl.output.values import as_json
from storage.configs.checksummed_json import unseal
from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded, read_first, read_last
from storage.format.fastjson import loads

from .pseudonyms import Pseudonyms

MOST_BYTES: Final = 8 << 20
"""Of a document; a larger one is left out."""
_LINES_BYTES: Final = 256 << 10
"""Of the end of a file of lines; its first line is shown, too."""
_LEFT_OUT: Final = "(left out)"

_TABLES: Final[Mapping[str, str]] = {
    "topicConfigTable": "topic",
    "subscriptionGroupTable": "group",
    "offsetTable": "topic@group",
    "lmqOffsetTable": "topic@group",
    "resetOffsetTable": "topic@group",
    "pullOffsetTable": "topic@group",
    "forbiddenTable": "group",
    "filterDataByTopic": "topic",
    "groupFilterData": "group",
    "groupTopicMap": "group",
    "transactionCount": "topic",
    "timingCount": "topic",
    "table": "topic@group",
    "queues": "topic@group",
    "exported": "topic@group",
    "committed": "topic@group",
    "ends": "topic",
    "topics": "topic",
    "consumers": "group",
    "attributes": "text",
    "subscriptionDataSet": "text",
}
"""Members whose keys are names, and of what."""

_OF_TABLES: Final[Mapping[str, str]] = {"groupTopicMap": "topic"}
"""Tables whose values are names: as which member they count."""

_KINDS: Final[Mapping[str, str]] = {
    "topic": "topic",
    "topicName": "topic",
    "topic_name": "topic",
    "target": "topic",
    "group": "group",
    "groupName": "group",
    "group_name": "group",
    "consumerGroup": "group",
    "producers": "group",
    "producer_groups": "group",
    "consumer_groups": "group",
    "user": "user",
    "host": "host",
    "store_host": "host",
    "born_host": "host",
    "id": "client",
    "client_id": "client",
    "broker_name": "broker",
    "name": "broker",
    "broker_cluster_name": "cluster",
    "cluster": "cluster",
    "run": "run",
}
"""Members whose texts are names, and of what; any other text gets a pseudonym as a text."""

_WORDS: Final = frozenset(
    {
        *("command", "what", "version", "progress", "type", "model", "where", "code", "severity"),
        *("topicFilterType", "topic_filter_type", "problem", "status", "kind"),
    }
)
"""Members whose texts are words of the program."""

_NEVER: Final = frozenset({"rewriting", "body", "properties", "text", "edited", "pipe", "note"})
"""Members that may hold content of messages: left out of every bundle."""

_FIELDS: Final = frozenset(
    {
        *("dataVersion", "counter", "timestamp", "stateVersion", "order", "perm", "readQueueNums"),
        *("writeQueueNums", "topicFilterType", "topicName", "topicSysFlag", "brokerId"),
        *("consumeBroadcastEnable", "consumeEnable", "consumeFromMinEnable", "groupName"),
        *("notifyConsumerIdsChangedEnable", "retryMaxTimes", "retryQueueNums", "groupSysFlag"),
        *("whichBrokerWhenConsumeSlowly", "consumeMessageOrderly", "consumeTimeoutMinute"),
        *("groupRetryPolicy", "type", "exponentialRetryPolicy", "customizedRetryPolicy", "next"),
        *("consumerGroup", "expression", "expressionType", "topic", "clientVersion", "bornTime"),
        *("deadTime", "bloomFilterData", "bitNum", "bitPos", "compiledExpression"),
    }
)
"""Members of RocketMQ's files that are no names."""


def redacted(value: Any, names: Pseudonyms, member: str = "", *, ours: bool = True) -> Any:
    """A document with pseudonyms; ``ours``: its members are the program's own, but for tables.

    ``member`` is the name of the member that holds ``value``.
    """
    if isinstance(value, Mapping):
        kind = _TABLES.get(member)
        inside = _OF_TABLES.get(member, "")
        return {
            _key(str(key), kind, names, ours=ours): _LEFT_OUT
            if kind is None and key in _NEVER
            else redacted(inner, names, inside if kind else str(key), ours=ours)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            redacted(inner, names, "" if isinstance(inner, Mapping) else member, ours=ours)
            for inner in value
        ]
    if not isinstance(value, str):
        return value
    if member in _WORDS:
        return names.words(value)
    return names.name(_KINDS.get(member, "text"), value)


def _key(key: str, kind: str | None, names: Pseudonyms, *, ours: bool) -> str:
    is_number = key.isascii() and key.isdigit()
    if kind is None:
        return (
            key
            if ours or is_number or key in _FIELDS | _TABLES.keys()
            else names.name("field", key)
        )
    if is_number and kind == "topic@group":  # queue ids and delay levels
        return key
    return names.name(kind, key)


def document(path: Path, names: Pseudonyms, *, ours: bool) -> Iterator[str]:
    """The lines of one JSON document. CorruptFileError, which has nothing of its content."""
    data = read_bounded(path, MOST_BYTES)
    value: Any
    if data.startswith(b'{"crc":'):
        value = unseal(data)
        if value is None:
            raise CorruptFileError(path, 0, "the checksum is wrong")
    else:
        try:
            value = loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise CorruptFileError(path, 0, f"it is not JSON ({len(data)} bytes)") from None
    yield from as_json(redacted(value, names, ours=ours), 1).splitlines()


def lines(path: Path, names: Pseudonyms) -> Iterator[str]:
    """The first line of a file of sealed lines, and the last ones; a damaged one is only named."""
    end = read_last(path, _LINES_BYTES)
    start = b""
    if len(end) == _LINES_BYTES:
        start = read_first(path, MOST_BYTES).partition(b"\n")[0]
        end = end.partition(b"\n")[2]
    for number, line in enumerate([start, *end.split(b"\n")]):
        if not line.strip():
            continue
        entry = unseal(line)
        if entry is None:
            yield as_json({"problem": "the checksum is wrong", "bytes": len(line)})
        else:
            yield as_json(redacted(entry, names))
        if number == 0:
            yield as_json({"problem": "lines after the first one are not shown"})
