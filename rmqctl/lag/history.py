"""Reports as Parquet: a folder a table, a file a run, so that history gathers.

    FOLDER/minutes/broker=broker-a/date=2026-11-21/part-1795287600000.parquet

Broker and date (UTC) stand in the path only, as Hive, Spark and pyarrow want it. The file is named
after the report's ``as_of``: a report of the same moment takes the place of the one before.
"""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rmqctl.errors import UsageProblem
from rmqctl.lag.reporting import only, since

if TYPE_CHECKING:
    from analytics.report import Report, Row

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
    "stores": ("path", "log_min_offset", "log_max_offset"),
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
}
"""The columns of each table, next to ``as_of``, ``broker`` and ``date``; names and units are those
of the JSON. A row of ``groups`` is a group in a topic on one broker."""

_TEXTS: Final = frozenset({"group", "topic", "tag", "status", "path"})
_RATES: Final = frozenset({"rate_in", "rate_out", "skew"})
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
"""What Hive escapes in the names of folders."""


def check_folder(save: str) -> None:
    """Whether reports can be kept there, before anything is counted. UsageProblem if not."""
    _arrow()
    if Path(save).exists() and not Path(save).is_dir():
        raise UsageProblem(f"--save: {save} is a file; Parquet goes into a folder")


def keep(
    by_broker: "Mapping[str, Sequence[Report]]",
    folder: Path,
    groups: "Sequence[Row]",
    begin: int | None,
) -> int:
    """Write the rows of these groups, of minutes and hours from ``begin`` (ms) on. Gives how many
    files were written; each is there when it is whole. Tables without rows have none."""
    arrow = _arrow()
    written = 0
    for broker, reports in by_broker.items():
        for name in TABLES:
            as_of = reports[0].as_of
            place = folder / name / f"broker={_escaped(broker)}" / f"date={_date(as_of)}"
            path = place / f"part-{as_of}.parquet"
            rows = [row for report in reports for row in _rows(report, name, groups, begin)]
            if rows:
                place.mkdir(parents=True, exist_ok=True)
                _write(arrow, path, arrow.Table.from_pylist(rows, _schema(arrow, name)))
                written += 1
            else:
                path.unlink(missing_ok=True)
    return written


def _rows(report: "Report", name: str, groups: "Sequence[Row]", begin: int | None) -> "list[Row]":
    rows: list[Row] = getattr(report, name)
    if name in {"minutes", "hours"}:
        rows = since(rows, f"{name[:-1]}_timestamp", begin)
    if name not in {"stores", "agenda", "orphans"}:
        rows = only(rows, groups)
    return [{"as_of": report.as_of, **row} for row in rows]


def _schema(arrow: Any, name: str) -> Any:
    kinds = {name: arrow.string() for name in _TEXTS} | {name: arrow.float64() for name in _RATES}
    columns = ("as_of", *TABLES[name])
    return arrow.schema([(column, kinds.get(column, arrow.int64())) for column in columns])


def _write(arrow: Any, path: Path, table: Any) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # no reader looks at dot files
    try:
        with temporary.open("wb") as file:
            arrow.parquet.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _escaped(name: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def _date(as_of: int) -> str:
    try:
        return f"{datetime.fromtimestamp(as_of / 1000, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        raise UsageProblem(f"--as-of: {as_of} ms is no date of a calendar") from None


def _arrow() -> Any:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise UsageProblem(
            "-o parquet needs the Python package pyarrow; install rmqctl[spark], or use -o json"
        ) from None
