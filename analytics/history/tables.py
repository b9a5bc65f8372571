"""The tables of kept reports, and the paths of their files.

    FOLDER/minutes/broker=broker-a/date=2026-11-21/part-1795287600000.parquet

Broker and date (UTC) are only in the path, as Hive, Spark and pyarrow expect. The file is named
after the report's ``as_of``: a report of the same moment replaces the one before. Further stores of
one broker have a number after that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from analytics.errors import KeptError, NoArrowError

_PLACE: Final = ("group", "topic")
_AMOUNTS: Final = ("messages", "bytes")
_FIGURES: Final = (
    "lag",
    "lag_bytes",
    "oldest_unread_timestamp",
    "oldest_unread_age_ms",
    "rate_in",
    "rate_out",
    "drain_ms",
    "status",
)
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "stores": ("path", "log_min_offset", "log_max_offset", "marks"),
    "groups": (
        *_PLACE,
        "queues",
        *_FIGURES,
        *("retry", "dlq", "worst_queue_id", "skew", "lost", "risk_timestamp", "unknown_queues"),
    ),
    "queues": (
        *_PLACE,
        *("queue_id", "min_offset", "committed_offset", "max_offset"),
        *_FIGURES,
        *("lost", "risk_timestamp"),
    ),
    "tags": (*_PLACE, "tag", *_AMOUNTS),
    "minutes": (*_PLACE, "minute_timestamp", *_AMOUNTS),
    "hours": (*_PLACE, "hour_timestamp", *_AMOUNTS),
    "ages": (*_PLACE, "from_age_ms", "to_age_ms", *_AMOUNTS),
    "agenda": ("level", "messages"),
    "orphans": _PLACE,
    "warnings": ("warning",),
}
"""The columns of each table, next to ``as_of``, ``broker`` and ``date``; names and units are those
of the JSON. A row of ``groups`` is a group in a topic on one broker; rates of ``queues`` are not
rounded; copies of one log have ``marks`` in common."""

_TEXTS: Final = frozenset({"group", "topic", "tag", "status", "path", "warning"})
_RATES: Final = frozenset({"rate_in", "rate_out", "skew"})
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
"""Characters that Hive escapes in the names of folders."""
_FILE: Final = re.compile(r"part-(\d+)(?:-(\d+))?\.parquet")


class Kept(NamedTuple):
    """A store's partial report as of a moment (ms), in files."""

    folder: str
    broker: str
    as_of: int
    number: int = 0
    """The number among several stores of the broker."""

    def path(self, table: str) -> Path:
        """Path of the rows of a table, if there are any."""
        more = f"-{self.number}" if self.number else ""
        name = f"part-{self.as_of}{more}.parquet"
        place = Path(self.folder, table, f"broker={_escaped(self.broker)}")
        return place / f"date={_date(self.as_of)}" / name


def newest(folder: str, until: int | None) -> Iterator[Kept]:
    """The newest kept data of each broker, not after ``until`` (ms). KeptError if there is none."""
    brokers = sorted(Path(folder, "stores").glob("broker=*"))
    for broker in brokers:
        name = unquote(broker.name.removeprefix("broker="))
        for day in sorted(broker.glob("date=*"), reverse=True):
            found = [
                Kept(folder, name, int(match[1]), int(match[2] or 0))
                for path in day.iterdir()
                if (match := _FILE.fullmatch(path.name))
                and (until is None or int(match[1]) <= until)
            ]
            if found:
                last = max(kept.as_of for kept in found)
                yield from sorted(kept for kept in found if kept.as_of == last)
                break
    if not brokers:
        raise KeptError(folder)


def schema(arrow: Any, name: str) -> Any:
    """The Arrow schema of a table."""
    kinds = {name: arrow.string() for name in _TEXTS} | {name: arrow.float64() for name in _RATES}
    kinds["marks"] = arrow.list_(arrow.string())
    columns = ("as_of", *TABLES[name])
    return arrow.schema([(column, kinds.get(column, arrow.int64())) for column in columns])


def arrow() -> Any:
    """The package pyarrow. Raises NoArrowError."""
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise NoArrowError from None


def _escaped(name: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def _date(as_of: int) -> str:
    return f"{datetime.fromtimestamp(as_of / 1000, UTC):%Y-%m-%d}"
