"""Writing reports as Parquet, for a later gathering."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.errors import JoinedError
from analytics.report.copies import NO_RECORD, place_of
from analytics.report.report import ends_after, make_report
from analytics.report.stores import as_text
from storage.files.creating import replacing

from .reading import again, joined_files, runs_in
from .tables import (
    LAST_MARK_KEY,
    TABLES,
    Kept,
    arrow,
    last_mark_text,
    schema,
    stored_columns,
    whole_table,
)

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
    """Write the rows of these groups and topics; minutes and hours that end after ``begin`` (ms).

    Gives how many files were written; each appears when it is complete, and the one of stores last:
    without it readers do not see the run. Tables without rows have none. Raises NoArrowError,
    OSError, and JoinedError, before anything is written, for a moment that has been joined.
    """
    wanted = set(places)
    written = 0
    stores: dict[str, int] = defaultdict(int)
    runs = []
    for share in shares:
        broker = as_text(share.ref.broker)
        runs.append(Kept(str(folder), broker, as_of, stores[broker]))
        stores[broker] += 1
    for kept in runs:
        _check_not_joined(kept)
    for kept, share in zip(runs, shares, strict=True):
        report = make_report([share], as_of)
        _remove(kept, "stores")
        for name in (*(name for name in TABLES if name != "stores"), "stores"):
            rows = [
                {"as_of": as_of, **row}
                for row in _rows(share, report, name)
                if _is_wanted(row, name, wanted, begin)
            ]
            if rows:
                _write(kept, name, rows)
                written += 1
            else:
                _remove(kept, name)
    for broker, count in stores.items():
        _forget(Kept(str(folder), broker, as_of, count))
    return written


def _check_not_joined(kept: Kept) -> None:
    def is_joined() -> bool:
        files = joined_files(kept.month_folder("stores"))
        return any(kept in runs_in(path, kept.folder) for path in files)

    if again(is_joined):
        raise JoinedError(kept.broker, kept.as_of, kept.folder)


def has_version_1(folder: Path) -> bool:
    """Whether a folder has files of version 1, which lie elsewhere."""
    return any(Path(folder, "stores").glob("broker=*"))


def _rows(share: PartialReport, report: Report, name: str) -> Iterable[Row]:
    if name == "warnings":
        return [
            {"warning": text, "group": group, "topic": topic}
            for text, group, topic in share.warnings
        ]
    rows: Iterable[Row] = getattr(report, name)
    if name == "stores":
        known = {"marks": sorted(share.marks), "is_damaged": share.is_damaged}
        return [{**row, **known} for row in rows]
    if name == "queues":
        lags = [queue for group_lag in share.group_lags for queue in group_lag.queues]
        return [
            {**row, "rate_in": lag.rate_in, "rate_out": lag.rate_out}
            for row, lag in zip(rows, lags, strict=True)
        ]
    return rows


def _is_wanted(row: Row, name: str, places: set[Place], begin: int | None) -> bool:
    if name in {"minutes", "hours"} and not ends_after(row, f"{name[:-1]}_timestamp", begin):
        return False
    if name in {"stores", "agenda", "orphans", "warnings"}:
        return True
    return (row["group"], row["topic"]) in places


def _write(kept: Kept, name: str, rows: Sequence[Row]) -> None:
    pyarrow: Any = arrow()
    whole = schema(pyarrow, name)
    stored = pyarrow.schema([whole.field(column) for column in stored_columns(name)])
    try:
        columns = pyarrow.Table.from_pylist(rows, stored)
    except UnicodeEncodeError:
        columns = pyarrow.Table.from_pylist([_with_text(row) for row in rows], stored)
    table = whole_table(pyarrow, name, columns, kept)
    if name == "stores":
        last = max((mark for row in rows for mark in row["marks"]), key=place_of, default=None)
        if last is not None and not last.endswith(NO_RECORD):
            metadata = {**table.schema.metadata, LAST_MARK_KEY: last_mark_text(last)}
            table = table.replace_schema_metadata(metadata)
    path = kept.path(name)

    def write() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:  # until then its name begins with a dot; readers ignore it
            pyarrow.parquet.write_table(table, file)

    again(write)  # a compaction may replace the folder meanwhile
    for old in kept.paths(name)[1:]:
        old.unlink(missing_ok=True)


def _with_text(row: Row) -> Row:
    return {key: as_text(one) if isinstance(one, str) else one for key, one in row.items()}


def _remove(kept: Kept, name: str) -> None:
    for path in kept.paths(name):
        path.unlink(missing_ok=True)


def _forget(kept: Kept) -> None:
    """Remove the files of an earlier run of the same moment for stores that are gone."""
    while any(path.exists() for path in kept.paths("stores")):
        for name in TABLES:
            _remove(kept, name)
        kept = kept._replace(number=kept.number + 1)
