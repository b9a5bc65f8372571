"""Writing reports as Parquet, for a later gathering."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.report.report import make_report
from storage.files.creating import replacing

from .tables import TABLES, Kept, arrow, schema

if TYPE_CHECKING:
    from analytics.report.amounts import Row
    from analytics.report.partial import PartialReport, Place
    from analytics.report.report import Report


def keep(
    shares: Sequence[PartialReport],
    as_of: int,
    folder: Path,
    places: Iterable[Place],
    begin: int | None,
) -> int:
    """Write the rows of these groups and topics, of minutes and hours from ``begin`` (ms) on.

    Gives how many files were written; each appears when it is complete. Tables without rows have
    none. Raises NoArrowError and OSError.
    """
    wanted = set(places)
    written = 0
    stores: dict[str, int] = defaultdict(int)
    for share in shares:
        broker = share.ref.broker
        report = make_report([share], as_of)
        kept = Kept(str(folder), broker, as_of, stores[broker])
        stores[broker] += 1
        for name in TABLES:
            path = kept.path(name)
            rows = [
                {"as_of": as_of, **row}
                for row in _rows(share, report, name)
                if _is_wanted(row, name, wanted, begin)
            ]
            if rows:
                _write(path, name, rows)
                written += 1
            else:
                path.unlink(missing_ok=True)
    for broker, count in stores.items():
        _forget(Kept(str(folder), broker, as_of, count))
    return written


def can_be_kept(as_of: int) -> bool:
    """Whether a moment (ms) has a date."""
    try:
        datetime.fromtimestamp(as_of / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return False
    return True


def _rows(share: PartialReport, report: Report, name: str) -> Iterable[Row]:
    if name == "warnings":
        return [{"warning": warning} for warning in share.warnings]
    rows: Iterable[Row] = getattr(report, name)
    if name == "stores":
        return [{**row, "marks": sorted(share.marks)} for row in rows]
    if name == "queues":
        lags = [queue for group_lag in share.group_lags for queue in group_lag.queues]
        return [
            {**row, "rate_in": lag.rate_in, "rate_out": lag.rate_out}
            for row, lag in zip(rows, lags, strict=True)
        ]
    return rows


def _is_wanted(row: Row, name: str, places: set[Place], begin: int | None) -> bool:
    if name in {"minutes", "hours"} and begin is not None:
        moment = row[f"{name[:-1]}_timestamp"]
        if moment is not None and moment < begin:
            return False
    if name in {"stores", "agenda", "orphans", "warnings"}:
        return True
    return (row["group"], row["topic"]) in places


def _write(path: Path, name: str, rows: Sequence[Row]) -> None:
    pyarrow: Any = arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:  # until then its name begins with a dot, and readers ignore it
        table = pyarrow.Table.from_pylist(rows, schema(pyarrow, name))
        pyarrow.parquet.write_table(table, file)


def _forget(kept: Kept) -> None:
    """Remove the files of an earlier run of the same moment for stores that are gone."""
    while kept.path("stores").exists():
        for name in TABLES:
            kept.path(name).unlink(missing_ok=True)
        kept = kept._replace(number=kept.number + 1)
