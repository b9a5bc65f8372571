"""The options of ``spark.read.format("rocketmq")``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from analytics.report.copies import store_log, without_copies
from analytics.report.stores import StoreRef, find_stores

from .tables import TABLES

_KNOWN: Final = (
    "path",
    "paths",
    "table",
    "topics",
    "groups",
    "pushdown",
    "tasks",
    "batchRows",
    "startingOffset",
    "maxBytesPerTrigger",
    "failOnDataLoss",
    "mode",
    "copies",
)

logger = logging.getLogger("rmqctl.datasource")
_MODES: Final = ("PERMISSIVE", "FAILFAST")


class OptionError(ValueError):
    """An option is unknown, missing or malformed."""


class Options(NamedTuple):
    """All options, read. Spark gives their names in any case.

    path                 stores: folders, patterns, YAML lists; more than one with commas between
    paths                the same as a list in JSON: Spark makes one of load([...])
    table                see TABLES; default messages
    topics, groups       names with commas between; default all but RocketMQ's own
    pushdown             true: filters on place and time are used before reading (Spark's setting
                         spark.sql.python.filterPushdown.enabled must be on, too)
    tasks                intended number of partitions; default 8
    batchRows            rows in an Arrow batch; default 10,000
    startingOffset       a stream's begin: earliest (default), latest, or a commit log offset
    maxBytesPerTrigger   bytes of the log that one batch of a stream takes, of each store
    failOnDataLoss       true (default): a query fails if messages have been deleted that it was to
                         read: since a stream's last batch, or since a batch was planned
    mode                 as of Spark's JSON: PERMISSIVE (default): the body is null if it cannot
                         be decompressed, see TABLES; FAILFAST: the query fails
    copies               once (default): of stores that hold one log (a slave and its master, a
                         store and its snapshot) only the one that goes farthest is read, as in a
                         lag report; all: each of them
    """

    stores: tuple[StoreRef, ...]
    table: str
    topics: frozenset[str] | None
    groups: frozenset[str] | None
    pushdown: bool
    tasks: int
    batch_rows: int
    starting_offset: str
    max_bytes: int | None
    fail_on_data_loss: bool
    fail_fast: bool
    copies_once: bool


def read_options(options: Mapping[str, str]) -> Options:
    """Read the options. Raises OptionError, and the errors of find_stores."""
    known = {name.lower(): name for name in _KNOWN}
    given: dict[str, str] = {}
    for name, value in options.items():
        right = known.get(name.lower())
        if right is None:
            near = get_close_matches(name, _KNOWN, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_KNOWN)}"
            raise OptionError(f"unknown option {name!r} ({hint})")
        given[right] = value
    table = given.get("table", "messages").lower()
    if table not in TABLES:
        raise OptionError(f"table: {table!r} is none of {', '.join(TABLES)}")
    stores = find_stores([*_names(given.get("path", "")), *_listed(given.get("paths", "[]"))])
    if not stores:
        raise OptionError('no store is named: option("path", ...), or load(...)')
    starting = given.get("startingOffset", "earliest")
    if starting not in {"earliest", "latest"}:
        _number("startingOffset", starting, 0, "neither earliest nor latest, and ")
    limit = given.get("maxBytesPerTrigger")
    mode = given.get("mode", _MODES[0]).upper()
    if mode not in _MODES:
        raise OptionError(f"mode: {mode!r} is neither {' nor '.join(_MODES)}")
    copies = given.get("copies", "once").lower()
    if copies not in {"once", "all"}:
        raise OptionError(f"copies: {copies!r} is neither once nor all")
    return Options(
        tuple(stores),
        table,
        _set(given.get("topics")),
        _set(given.get("groups")),
        _flag("pushdown", given.get("pushdown", "false")),
        _number("tasks", given.get("tasks", "8"), 1),
        _number("batchRows", given.get("batchRows", "10000"), 1),
        starting,
        None if limit is None else _number("maxBytesPerTrigger", limit, 1),
        _flag("failOnDataLoss", given.get("failOnDataLoss", "true")),
        mode == "FAILFAST",
        copies == "once",
    )


def kept_stores(options: Options) -> Sequence[StoreRef]:
    """The stores to read: without copies of one log, as in a lag report, unless the options say so.

    Logs each store that is left out. Raises the errors of ``StoreView.open``.
    """
    if not options.copies_once or len(options.stores) == 1:
        return options.stores
    kept, notes = without_copies([store_log(ref) for ref in options.stores])
    for note in notes:
        logger.warning("%s; copies=all reads it, too", note)
    return [log.ref for log in kept]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _set(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(_names(text))


def _listed(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        raise OptionError(f"paths: {text!r} is no list of texts in JSON")
    return found


def _number(name: str, text: str, least: int, but: str = "") -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise OptionError(f"{name}: {text!r} is {but}not a number from {least} on")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise OptionError(f"{name}: {text!r} is neither true nor false")
    return text.lower() == "true"
