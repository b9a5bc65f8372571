"""The tables of kept reports, their columns, and the paths of their files.

    FOLDER/minutes/month=2026-11/part-1795287600000@broker-a.parquet

A run writes a file for each table and store. Its name has the report's ``as_of`` and the broker, so
a report of the same moment replaces the one before; further stores of one broker have a number
after that. ``compaction`` joins these files into ``joined-...`` ones in the same folder. All rows
say themselves whose they are, so any program reads a table as the Parquet files of one folder.

Files of version 1 lie elsewhere (``FOLDER/minutes/broker=broker-a/date=2026-11-21/part-...``), and
have the broker and the date only in their path. They are still read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.parse import unquote

from analytics.errors import HistoryVersionError, NoArrowError

VERSION: Final = 2
"""Of columns and paths. Version 1 had neither TIMESTAMPs nor the names of brokers in its rows."""
VERSION_KEY: Final = b"rmqctl-history-version"
"""The key of the version in a file's metadata; files of version 1 lack it."""
LAST_MARK_KEY: Final = b"rmqctl-last-mark"
"""The key of the last mark of a log in the metadata of a run's own file of ``stores``."""

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
    "stores": ("path", "log_min_offset", "log_max_offset", "marks", "is_damaged"),
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
    "warnings": ("warning", *_PLACE),
}
"""The columns of each table, next to those of its run (see ``RUN``) and the times; names and units
are those of the JSON. A row of ``groups`` is a group in a topic on one broker; rates of ``queues``
are not rounded; copies of one log have ``marks`` in common, and none at one place that differ. A
warning without group and topic is about the whole store."""
ADDED: Final = frozenset({("stores", "is_damaged"), ("warnings", "group"), ("warnings", "topic")})
"""Columns that files of earlier versions lack: they are null there."""

RUN: Final = ("as_of", "as_of_time", "date", "broker", "store_number")
"""The first columns of each table: the moment, its day in UTC, and which store it is."""

_TEXTS: Final = frozenset({"group", "topic", "tag", "status", "path", "warning", "broker"})
_RATES: Final = frozenset({"rate_in", "rate_out", "skew"})
_MOMENT: Final = "_timestamp"
_FIRST_MS: Final = -62_135_596_800_000
_END_MS: Final = 253_402_300_800_000
"""The years 1 to 9999: other milliseconds have no date, and their TIMESTAMP is null."""

_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
"""Characters that some program does not take in a path."""
_LONGEST: Final = 150
"""Bytes of an escaped name in a path; a longer one is replaced by a digest."""
_LONGEST_NAME: Final = 255
"""Of a file system."""
_PART: Final = re.compile(r"part-(\d+)(?:-(\d+))?@(.+)\.parquet")
_PART_1: Final = re.compile(r"part-(\d+)(?:-(\d+))?\.parquet")
JOINED: Final = re.compile(r"joined-(\d{4}-\d\d(?:-\d\d)?)-[0-9a-f]{32}\.parquet")
"""A file of many runs, and the day or the month that it is of."""


class Kept(NamedTuple):
    """A store's partial report as of a moment (ms), in files."""

    folder: str
    broker: str
    as_of: int
    number: int = 0
    """The number among several stores of the broker."""

    def path(self, table: str) -> Path:
        """Path of the rows of a table that the run has written, unless they have been joined."""
        name = f"part-{self.as_of}{self._more}@{_in_path(self.broker)}.parquet"
        return Path(self.folder, table, self._month, name)

    def paths(self, table: str) -> list[Path]:
        """Where the run may have written the rows: now, and by version 1."""
        folder = f"broker={_escaped(self.broker)}"
        if len(folder.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
            return [self.path(table)]
        name = f"part-{self.as_of}{self._more}.parquet"
        old = Path(self.folder, table, folder, f"date={date_of(self.as_of)}", name)
        return [self.path(table), old]

    def month_folder(self, table: str) -> Path:
        """Where the rows of a table are, joined or not."""
        return Path(self.folder, table, self._month)

    @property
    def _month(self) -> str:
        return f"month={date_of(self.as_of):%Y-%m}"

    @property
    def _more(self) -> str:
        return f"-{self.number}" if self.number else ""


def kept_at(folder: str, path: Path) -> Kept | None:
    """The run that has written a file; None for a file of another name, as :func:`as_of_in`.

    Raises OSError and ValueError if the broker's name is only in the file, which cannot be read.
    """
    as_of = as_of_in(path)
    if as_of is None:
        return None
    match = _PART.fullmatch(path.name)
    if match is not None:
        text = match[3]
        broker = _broker_in(path) if text.startswith("~") else unquote(text)
        return Kept(folder, broker, as_of, int(match[2] or 0))
    match = _PART_1.fullmatch(path.name)
    if match is not None and path.parent.parent.name.startswith("broker="):
        broker = unquote(path.parent.parent.name.removeprefix("broker="))
        return Kept(folder, broker, as_of, int(match[2] or 0))
    return None


def as_of_in(path: Path) -> int | None:
    """The moment (ms) in the name of a run's own file; None for a file of another name, and for a
    moment that no run has."""
    match = _PART.fullmatch(path.name) or _PART_1.fullmatch(path.name)
    as_of = None if match is None else int(match[1])
    return as_of if as_of is not None and can_be_kept(as_of) else None


def schema(arrow: Any, name: str) -> Any:
    """The Arrow schema of a table."""
    moment = arrow.timestamp("ms", tz="UTC")
    kinds = {name: arrow.string() for name in _TEXTS} | {name: arrow.float64() for name in _RATES}
    kinds |= {"as_of_time": moment, "date": arrow.date32(), "marks": arrow.list_(arrow.string())}
    kinds["is_damaged"] = arrow.bool_()
    fields = [(column, kinds.get(column, arrow.int64())) for column in RUN]
    for column in TABLES[name]:
        fields.append((column, kinds.get(column, arrow.int64())))
        if column.endswith(_MOMENT):
            fields.append((time_column(column), moment))
    return arrow.schema(fields, {VERSION_KEY: str(VERSION).encode()})


def stored_columns(name: str) -> list[str]:
    """The columns from which the others of a table follow, and which files of version 1 have."""
    return ["as_of", *TABLES[name]]


def with_added(arrow: Any, name: str, table: Any) -> Any:
    """A table with the columns that its file lacks as it is of an earlier version."""
    for field in schema(arrow, name):
        if (name, field.name) in ADDED and field.name not in table.column_names:
            table = table.append_column(field, arrow.nulls(table.num_rows, field.type))
    return table


def whole_table(arrow: Any, name: str, table: Any, kept: Kept) -> Any:
    """A table as files have it, of the ``stored_columns`` of a run."""
    wanted = schema(arrow, name)
    made = {
        "date": arrow.scalar(date_of(kept.as_of), arrow.date32()),
        "broker": arrow.scalar(kept.broker, arrow.string()),
        "store_number": arrow.scalar(kept.number, arrow.int64()),
    }
    columns = []
    for field in wanted:
        if field.name in made:
            columns.append(arrow.repeat(made[field.name], table.num_rows))
        elif field.name == "as_of_time" or (
            field.name.endswith("_time") and field.name not in TABLES[name]
        ):
            columns.append(_times(arrow, table.column(_ms_column(field.name)), field.type))
        else:
            columns.append(table.column(field.name).cast(field.type))
    return arrow.table(columns, schema=wanted)


def last_mark_text(mark: str) -> bytes:
    """How metadata name the last mark of a log: as a text that no other one contains."""
    return f"last mark: {mark}\n".encode("utf-8", "surrogatepass")


def time_column(column: str) -> str:
    """The TIMESTAMP beside a column of milliseconds."""
    return column.removesuffix(_MOMENT) + "_time"


def check_version(metadata: Mapping[bytes, bytes] | None, path: Path) -> None:
    """Raise HistoryVersionError for a file of a later version than this one's."""
    text = (metadata or {}).get(VERSION_KEY, b"1")
    if not text.isdigit() or int(text) > VERSION:
        raise HistoryVersionError(path, text.decode("ascii", "replace"), VERSION)


def can_be_kept(as_of: int) -> bool:
    """Whether a moment (ms) has a date."""
    return _FIRST_MS <= as_of < _END_MS


def date_of(as_of: int) -> Any:
    """The day of a moment (ms), in UTC."""
    return datetime.fromtimestamp(as_of / 1000, UTC).date()


def arrow() -> Any:
    """The package pyarrow. Raises NoArrowError."""
    try:
        import_module("pyarrow.parquet")
        import_module("pyarrow.compute")
        return import_module("pyarrow")
    except ImportError:
        raise NoArrowError from None


def parquet_file(file: IO[bytes]) -> Any:
    """A Parquet file that is open, read by Arrow alone. Raises ValueError for no Parquet.

    No thread of Arrow may hold a Python file: one that lets it go while the interpreter ends aborts
    the process. So Arrow opens the descriptor anew, or the name where there is no /dev/fd.
    """
    path = f"/dev/fd/{file.fileno()}"
    if not Path(path).exists():
        path = file.name
    return arrow().parquet.ParquetFile(arrow().OSFile(path))


def _ms_column(column: str) -> str:
    return "as_of" if column == "as_of_time" else column.removesuffix("_time") + _MOMENT


def _times(arrow: Any, column: Any, moment: Any) -> Any:
    compute = arrow.compute
    column = column.cast(arrow.int64())
    has_date = compute.and_(compute.greater_equal(column, _FIRST_MS), compute.less(column, _END_MS))
    return compute.if_else(has_date, column, arrow.scalar(None, arrow.int64())).cast(moment)


def _in_path(broker: str) -> str:
    text = _escaped(broker)
    if len(text.encode("utf-8", "surrogatepass")) <= _LONGEST and not text.startswith("~"):
        return text
    return "~" + sha256(broker.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _broker_in(path: Path) -> str:
    """The name of the broker of a part, of its rows."""
    with path.open("rb") as file:
        table = parquet_file(file).read(["broker"])
    names = table.column(0).unique().to_pylist()
    if len(names) != 1 or not isinstance(names[0], str):
        raise ValueError(f"{path} names no broker")
    return names[0]


def _escaped(name: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name)
