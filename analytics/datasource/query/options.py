"""The options of ``spark.read.format("rocketmq")``."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from analytics.report.stores import StoreRef, find_stores

from .bounds import BEGIN, EARLIEST, END, LATEST, Bound, read_bound
from .errors import OptionError
from .tables import FAIL, NULL, OF_STORES, ON_DAMAGE, STREAMED, TABLES, columns_of
from .topics import TopicChoice, read_names, read_topics, split_names

logger = logging.getLogger("rmqctl.datasource")
_MOST_BATCH_BYTES: Final = 1 << 30
"""Arrow's offsets have 31 bits, and a message may come on top (storage.read.message_table)."""
_MODES: Final = ("PERMISSIVE", "FAILFAST")
_COPIES: Final = ("once", "all")
_UNITS_S: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_PUSHDOWN: Final = ("auto", "true", "false")
_UNREADABLE: Final = ("fail", "skip")
_OF_TABLES: Final = "option."
"""Spark gives the options of CREATE TABLE under this prefix, too."""
_OF_CATALOG: Final = ("comment", "external", "is_managed_location", "location", "owner", "provider")
"""What Spark adds to the options of CREATE TABLE."""


class Scope(NamedTuple):
    """Where an option has an effect."""

    tables: tuple[str, ...] = tuple(TABLES)
    batch: bool = True
    stream: bool = True


_PROGRESS: Final = tuple(name for name in TABLES if name not in (*STREAMED, *OF_STORES))
_BY_TOPIC: Final = (*STREAMED, *_PROGRESS, "delayed", "transactions", "topics", "changes")
_BY_GROUP: Final = (*_PROGRESS, "retries", "deadletters", "groups", "changes")
_WITH_MESSAGES: Final = ("messages", "retries", "deadletters")
OPTIONS: Final[dict[str, Scope]] = {
    "path": Scope(),
    "paths": Scope(),
    "table": Scope(),
    "columns": Scope(),
    "topics": Scope(_BY_TOPIC),
    "topicsPattern": Scope(STREAMED),
    "queues": Scope(STREAMED),
    "groups": Scope(_BY_GROUP),
    "pushdown": Scope(stream=False),
    "maxBytesPerPartition": Scope(STREAMED),
    "minPartitions": Scope(STREAMED),
    "batchRows": Scope((*STREAMED, *OF_STORES)),
    "batchBytes": Scope((*STREAMED, *OF_STORES)),
    "startingOffset": Scope(STREAMED),
    "startingTimestamp": Scope(STREAMED),
    "endingOffset": Scope(STREAMED, stream=False),
    "endingTimestamp": Scope(STREAMED, stream=False),
    "maxBytesPerTrigger": Scope(STREAMED, batch=False),
    "maxOffsetsPerTrigger": Scope(STREAMED, batch=False),
    "minOffsetsPerTrigger": Scope(STREAMED, batch=False),
    "maxTriggerDelay": Scope(STREAMED, batch=False),
    "failOnDataLoss": Scope(STREAMED),
    "mode": Scope(("messages",)),
    "onDamage": Scope(_WITH_MESSAGES),
    "commitGroup": Scope(STREAMED, batch=False),
    "copies": Scope(),
    "onUnreadableStore": Scope(),
}


class TaskSize(NamedTuple):
    """How much one task reads."""

    most_bytes: int = 128 << 20
    """Of records, or of units."""
    least: int | None = None
    """Tasks, at least, however little there is; None: as many as are worth it."""


class TriggerLimits(NamedTuple):
    """How much one batch of a stream takes. None: no limit."""

    max_bytes: int | None = None
    """Of the logs of all stores."""
    max_messages: int | None = None
    """Of all stores."""
    min_messages: int | None = None
    """Of all stores; a batch waits for them, up to ``max_delay_s``."""
    max_delay_s: float = 900.0


class Options(NamedTuple):
    """All options, read. Spark gives their names in any case.

    path                 stores: folders, patterns, addresses of object stores, YAML lists; more
                         than one with commas between
    paths                the same as a list in JSON: Spark makes one of load([...])
    table                see TABLES; default messages
    columns              the columns to read, commas between; default all
    topics, groups       names with commas between; default all but RocketMQ's own
    topicsPattern        a regular expression (RE2) for whole names of topics, also of new ones
    queues               queue ids in JSON, by topic, or by broker and topic
    pushdown             filters on place, time and tags are used before reading. auto (default):
                         where Spark's setting spark.sql.python.filterPushdown.enabled is on; true:
                         a query fails where it is off; false
    maxBytesPerPartition bytes of records (consumequeue: of units) of a task; default 128 MiB
    minPartitions        tasks, at least; default 8, but none for less than 20,000 messages
    batchRows            most rows of an Arrow batch; default 10,000
    batchBytes           about the most bytes of an Arrow batch, at most 1 GiB; default 64 MiB. A
                         worker holds two or three of them
    startingOffset       where reading begins: earliest (default), latest (streams), a commit log
                         offset, JSON, or group:NAME, see ``bounds``
    startingTimestamp    the same by store time, in the forms of the commands (UTC), or JSON
    endingOffset, endingTimestamp
                         where a batch ends, in the same forms; default latest
    maxBytesPerTrigger   bytes of the logs that one batch of a stream takes, about, of all stores
                         together
    maxOffsetsPerTrigger messages that one batch of a stream takes, of all stores together
    minOffsetsPerTrigger messages of all stores that a batch waits for, but no longer than
    maxTriggerDelay      15m (default), or another time, as 30s
    failOnDataLoss       true (default): a query fails if messages have been deleted that it was to
                         read: since a stream's last batch, or since a batch was planned
    mode                 as of Spark's JSON: PERMISSIVE (default): the body is null if it cannot
                         be decompressed, see TABLES; FAILFAST: the query fails
    onDamage             fail (default): a query fails if a message cannot be read; skip: it is left
                         out, and a worker's log has the number; null: all but its place is null,
                         and the column ``_damage`` says where and why
    commitGroup          a stream's position becomes the progress of this group, see
                         analytics.sink.group_progress
    copies               once (default): of stores that hold one log (a slave and its master, a
                         store and its snapshot) only the one that goes farthest is read, as in a
                         lag report; all: each of them
    onUnreadableStore    fail (default), or skip: a store that cannot be opened is left out, and a
                         stream goes on there when it can be opened again
    """

    stores: tuple[StoreRef, ...]
    table: str
    columns: tuple[str, ...]
    topics: TopicChoice
    groups: frozenset[str] | None
    pushdown: str
    task_size: TaskSize
    batch_rows: int
    batch_bytes: int
    starting: Bound
    ending: Bound
    limits: TriggerLimits
    fail_on_data_loss: bool
    fail_fast: bool
    copies_once: bool
    skip_unreadable: bool
    on_damage: str = FAIL
    commit_group: str | None = None
    given: tuple[str, ...] = ()
    """Names of the options that are given."""


def read_options(options: Mapping[str, str]) -> Options:
    """Read the options. Raises OptionError, and the errors of find_stores."""
    given = _given(options)
    table = given.get("table", "messages").lower()
    if table not in TABLES:
        raise OptionError(f"table: {table!r} is none of {', '.join(TABLES)}")
    on_damage = _one_of("onDamage", given, ON_DAMAGE)
    whole = columns_of(table, damage=on_damage == NULL and table == "messages")
    named = [*split_names(given.get("path", "")), *_listed(given.get("paths", "[]"))]
    stores = find_stores(named, addresses=True)
    if not stores:
        raise OptionError('no store is named: option("path", ...), or load(...)')
    return Options(
        tuple(stores),
        table,
        _columns(given["columns"], table, whole) if "columns" in given else tuple(whole),
        read_topics(given),
        read_names("groups", given["groups"]) if "groups" in given else None,
        _one_of("pushdown", given, _PUSHDOWN),
        _task_size(given),
        _number("batchRows", given.get("batchRows", "10000"), 1),
        _batch_bytes(given.get("batchBytes", str(64 << 20))),
        read_bound("startingOffset", "startingTimestamp", given, BEGIN),
        read_bound("endingOffset", "endingTimestamp", given, END),
        _trigger_limits(given),
        _flag("failOnDataLoss", given.get("failOnDataLoss", "true")),
        _one_of("mode", given, _MODES) == "FAILFAST",
        _one_of("copies", given, _COPIES) == "once",
        _one_of("onUnreadableStore", given, _UNREADABLE) == "skip",
        on_damage,
        _group("commitGroup", given["commitGroup"]) if "commitGroup" in given else None,
        tuple(given),
    )


def check_effects(options: Options, *, stream: bool) -> None:
    """Raise OptionError for an option that has no effect on a batch or stream of the table."""
    for name in options.given:
        scope = OPTIONS[name]
        if options.table not in scope.tables:
            raise OptionError(
                f"{name} has no effect on {options.table}, only on {', '.join(scope.tables)}"
            )
        if not (scope.stream if stream else scope.batch):
            here, there = ("a stream", "a batch") if stream else ("a batch", "a stream")
            raise OptionError(f"{name} has no effect in {here}, only in {there}; leave it out")
    if options.on_damage == NULL and options.table != "messages":
        raise OptionError(
            f"onDamage: null gives rows of messages only; {options.table} takes fail or skip"
        )
    if not stream and options.starting.word == LATEST:
        raise OptionError("startingOffset: a batch that begins at 'latest' has no rows")
    if options.ending.word == EARLIEST:
        raise OptionError("endingOffset: a batch that ends at 'earliest' has no rows")
    if stream and options.starting.group is not None and options.topics == TopicChoice():
        raise OptionError(
            "startingOffset: a stream that begins at a group's progress must name the topics that "
            "the group reads (topics, topicsPattern or queues)"
        )


def of_table(options: Mapping[str, str]) -> dict[str, str] | None:
    """The options of CREATE TABLE, to be kept in the table's schema; None for other queries."""
    if not any(name.lower().startswith(_OF_TABLES) or name == "provider" for name in options):
        return None
    return _given(options)


def _given(options: Mapping[str, str]) -> dict[str, str]:
    """Options by their right names. Raises OptionError for unknown ones."""
    known = {name.lower(): name for name in OPTIONS}
    given: dict[str, str] = {}
    for name, value in options.items():
        bare = name[len(_OF_TABLES) :] if name.lower().startswith(_OF_TABLES) else name
        right = known.get(bare.lower())
        if right is not None:
            given[right] = value
        elif name.lower() not in _OF_CATALOG or "provider" not in options:
            lower = get_close_matches(bare.lower(), known, 1)
            hint = f"did you mean {known[lower[0]]}?" if lower else f"known: {', '.join(OPTIONS)}"
            raise OptionError(f"unknown option {bare!r} ({hint})")
    return given


def _listed(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        raise OptionError(f"paths: {text!r} is no list of texts in JSON")
    return found


def _number(name: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise OptionError(f"{name}: {text!r} is not a number from {least} on")
    return int(text)


def _task_size(given: Mapping[str, str]) -> TaskSize:
    most, least = "maxBytesPerPartition", "minPartitions"
    return TaskSize(
        _number(most, given[most], 1) if most in given else TaskSize().most_bytes,
        _number(least, given[least], 1) if least in given else None,
    )


def _trigger_limits(given: Mapping[str, str]) -> TriggerLimits:
    names = ("maxBytesPerTrigger", "maxOffsetsPerTrigger", "minOffsetsPerTrigger")
    of_bytes, most, least = (
        _number(name, given[name], 1) if name in given else None for name in names
    )
    if of_bytes is not None and most is not None:
        raise OptionError(f"{names[0]} and {names[1]}: give one of them")
    if most is not None and least is not None and least > most:
        raise OptionError(f"{names[2]}: {least} is more than {names[1]}, which is {most}")
    if "maxTriggerDelay" not in given:
        return TriggerLimits(of_bytes, most, least)
    if least is None:
        raise OptionError(f"maxTriggerDelay has no effect without {names[2]}")
    return TriggerLimits(of_bytes, most, least, _seconds(given["maxTriggerDelay"]))


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+) *(ms|s|m|min|h|d)", text.strip())
    if found is None:
        raise OptionError(f"maxTriggerDelay: {text!r} is no time, as 500ms, 30s, 15m or 1h")
    return int(found[1]) * _UNITS_S[found[2]]


def _one_of(name: str, given: Mapping[str, str], values: Sequence[str]) -> str:
    """One of some values, in any case; the first is the default."""
    text = given.get(name, values[0])
    found = next((value for value in values if value.lower() == text.lower()), None)
    if found is None:
        raise OptionError(f"{name}: {text!r} is none of {', '.join(values)}")
    return found


def _group(name: str, text: str) -> str:
    """A group's name, which the broker's rules check when the stream starts."""
    if not text.strip():
        raise OptionError(f"{name}: {text!r} names no group")
    return text.strip()


def _columns(text: str, table: str, whole: Mapping[str, str]) -> tuple[str, ...]:
    names = split_names(text)
    for name in names:
        if name not in whole:
            near = get_close_matches(name, whole, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(whole)}"
            raise OptionError(f"columns: {table} has no column {name} ({hint})")
    if not names or len(set(names)) < len(names):
        raise OptionError(f"columns: {text!r} names no column, or one of them twice")
    return tuple(names)


def _batch_bytes(text: str) -> int:
    size = _number("batchBytes", text, 1)
    if size > _MOST_BATCH_BYTES:
        raise OptionError(f"batchBytes: {text} is more than {_MOST_BATCH_BYTES}, 1 GiB")
    return size


def _flag(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise OptionError(f"{name}: {text!r} is neither true nor false")
    return text.lower() == "true"
