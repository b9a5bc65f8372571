"""Reading the rows of runs, beside processes that write, replace and join their files.

A run's own file of a table counts before a joined one, which may hold an older form of the same
run. A file that is gone between listing and opening has been joined or replaced meanwhile: the
reader looks again.
"""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from analytics.errors import HistoryVersionError, KeptFileError

from .logs import LOG
from .tables import (
    JOINED,
    Kept,
    arrow,
    can_be_kept,
    check_version,
    kept_at,
    parquet_file,
    schema,
    stored_columns,
    whole_table,
    with_added,
)

if TYPE_CHECKING:
    from analytics.report.amounts import Row

T = TypeVar("T")
UNREADABLE: Final = (OSError, ValueError, KeyError, IndexError, TypeError, OverflowError)
"""Errors for files that are no kept reports, or have columns of other types; ArrowInvalid is a
ValueError."""
_TRIES: Final = 20
_OF_RUN: Final = ["as_of", "broker", "store_number"]


def all_runs(folder: str) -> set[Kept]:
    """All runs of a folder, by the table of stores, which a run writes last. Raises OSError."""
    return again(lambda: set(_runs(folder, "stores")))


def stores_of(runs: Iterable[Kept], unreadable: dict[Kept, str]) -> dict[Kept, Row]:
    """The rows of runs in ``stores``, with the columns ``LOG``; ``unreadable`` gets the reasons of
    the others. Raises as :func:`table_of_runs`.
    """
    found = {}
    for folder, table in tables_by_folder(runs, "stores", LOG, unreadable).items():
        for row in table.to_pylist():
            found[Kept(folder, row["broker"], row["as_of"], row["store_number"])] = row
    return found


def tables_by_folder(
    runs: Iterable[Kept], name: str, columns: Sequence[str], unreadable: dict[Kept, str]
) -> dict[str, Any]:
    """The rows of runs in a table, by folder. See :func:`table_of_runs`."""
    by_folder: dict[str, list[Kept]] = defaultdict(list)
    for kept in runs:
        by_folder[kept.folder].append(kept)
    return {
        folder: table_of_runs(some, name, columns, unreadable.__setitem__)
        for folder, some in by_folder.items()
    }


def runs_in(path: Path, folder: str) -> set[Kept]:
    """The runs of which a joined file has rows. Raises OSError and ValueError."""
    return {kept for table in _row_groups(path, _OF_RUN) for kept in runs_of(table, folder)}


def runs_of(table: Any, folder: str) -> set[Kept]:
    """The runs of some rows of a joined file. ValueError for a moment that no run has."""
    runs = table.select(_OF_RUN).group_by(_OF_RUN).aggregate([]).to_pylist()
    for row in runs:
        if row["as_of"] is None or not can_be_kept(row["as_of"]):
            raise ValueError(f"it has a report as of {row['as_of']} ms, which is no date")
    return {Kept(folder, row["broker"], row["as_of"], row["store_number"]) for row in runs}


def rows_of(kept: Kept, name: str) -> list[Row]:
    """The rows of a table of a run. See :func:`table_of`."""
    table = table_of(kept, name)
    rows: list[Row] = [] if table is None else table.to_pylist()
    return rows


def table_of(kept: Kept, name: str) -> Any:
    """A table of a run, with its ``stored_columns``; None without rows.

    Raises NoArrowError, OSError, HistoryVersionError, and ValueError for a file that is no Parquet.
    """
    return again(lambda: _look(kept, name))


def table_of_runs(
    runs: Collection[Kept], name: str, columns: Sequence[str], failed: Callable[[Kept, str], object]
) -> Any:
    """Columns of a table of many runs, with ``as_of``, ``broker`` and ``store_number``.

    Joined files are read once for all of them. ``failed`` is called with the runs that cannot be
    read, and the reason. Raises NoArrowError, OSError and KeptFileError.
    """
    return again(lambda: _look_for_all(runs, name, columns, failed))


def of_runs(table: Any, runs: Iterable[Kept]) -> Any:
    """The rows of some runs."""
    pyarrow = arrow()
    compute = pyarrow.compute
    keys = compute.binary_join_element_wise(
        table.column("broker"),
        *(table.column(name).cast(pyarrow.string()) for name in ("as_of", "store_number")),
        "\n",
    )
    wanted = [f"{kept.broker}\n{kept.as_of}\n{kept.number}" for kept in runs]
    return table.filter(compute.is_in(keys, pyarrow.array(wanted, pyarrow.string())))


def read_part(path: Path, name: str) -> Any:
    """The ``stored_columns`` of a run's own file. Raises as :func:`table_of`."""
    with path.open("rb") as file:
        table = opened_parquet(file, path).read(stored_columns(name))
        return with_added(arrow(), name, table).select(stored_columns(name))


def opened_parquet(file: IO[bytes], path: Path) -> Any:
    """A file of kept reports. Raises HistoryVersionError, and ValueError for no Parquet."""
    opened = parquet_file(file)
    check_version(opened.schema_arrow.metadata, path)
    return opened


def joined_files(folder: Path) -> list[Path]:
    """The joined files of a table and month, the last one first."""
    found = [folder / name for name in _names(folder) if JOINED.fullmatch(name)]
    return sorted(found, key=lambda path: -path.stat().st_mtime_ns)


def again(look: Callable[[], T]) -> T:
    """Look, and look again where a file is gone that was there a moment before."""
    for _ in range(_TRIES):
        try:
            return look()
        except FileNotFoundError:
            continue
    return look()


def _look(kept: Kept, name: str) -> Any:
    for path in kept.paths(name):
        if path.exists():
            return read_part(path, name)
    for path in joined_files(kept.month_folder(name)):
        found = _read_run(path, kept, name)
        if found is not None:
            return found
    if name == "stores":
        path = kept.path(name)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return None


def _look_for_all(
    runs: Collection[Kept], name: str, columns: Sequence[str], failed: Callable[[Kept, str], object]
) -> Any:
    pyarrow = arrow()
    wanted = schema(pyarrow, name)
    kinds = pyarrow.schema([wanted.field(column) for column in (*_OF_RUN, *columns)])
    found = [kinds.empty_table()]
    left = set(runs)
    for kept in runs:
        path = next((path for path in kept.paths(name) if path.exists()), None)
        if path is None:
            continue
        left.discard(kept)
        try:
            table = whole_table(pyarrow, name, read_part(path, name), kept)
        except FileNotFoundError:
            raise
        except UNREADABLE as error:
            failed(kept, str(KeptFileError(path, error)))
        else:
            found.append(table.select(kinds.names))
    for month in sorted({kept.month_folder(name) for kept in left}):
        for path in joined_files(month):
            here = set()
            try:
                for table in _row_groups(path, kinds.names):
                    some = runs_of(table, next(iter(runs)).folder) & left
                    here |= some
                    found.append(of_runs(table, some).select(kinds.names).cast(kinds))
            except FileNotFoundError:
                raise
            except UNREADABLE as error:
                raise KeptFileError(path, error) from error
            left -= here
    return pyarrow.concat_tables(found)


def _row_groups(path: Path, columns: list[str]) -> Iterator[Any]:
    with path.open("rb") as file:
        opened = opened_parquet(file, path)
        for number in range(opened.num_row_groups):
            yield opened.read_row_group(number, columns)


def _read_run(path: Path, kept: Kept, name: str) -> Any:
    """The rows of one run in a joined file; None if there are none."""
    compute = arrow().compute
    with path.open("rb") as file:
        opened = opened_parquet(file, path)
        wanted = [
            number
            for number in range(opened.num_row_groups)
            if _may_hold(opened.metadata.row_group(number), kept)
        ]
        if not wanted:
            return None
        columns = list(dict.fromkeys([*_OF_RUN, *stored_columns(name)]))
        table = with_added(arrow(), name, opened.read_row_groups(wanted, columns))
    is_its = compute.and_(
        compute.equal(table.column("as_of"), kept.as_of),
        compute.and_(
            compute.equal(table.column("broker"), kept.broker),
            compute.equal(table.column("store_number"), kept.number),
        ),
    )
    table = table.filter(is_its)
    return table.select(stored_columns(name)) if table.num_rows else None


def _may_hold(row_group: Any, kept: Kept) -> bool:
    """Whether a part of a file may have rows of a run, by the bounds of its columns."""
    values = {"as_of": kept.as_of, "broker": kept.broker}
    for number in range(row_group.num_columns):
        column = row_group.column(number)
        value = values.get(column.path_in_schema)
        bounds = column.statistics
        if value is None or bounds is None or not bounds.has_min_max:
            continue
        if not bounds.min <= value <= bounds.max:
            return False
    return True


def _runs(folder: str, name: str) -> Iterator[Kept]:
    table = Path(folder, name)
    for day in _names(table):
        if day.startswith("month="):
            yield from _runs_of_month(folder, table / day)
        elif day.startswith("broker="):
            for date in _names(table / day):
                if date.startswith("date="):
                    for path in _names(table / day / date):
                        kept = kept_at(folder, table / day / date / path)
                        if kept is not None:
                            yield kept


def _runs_of_month(folder: str, month: Path) -> Iterator[Kept]:
    for name in _names(month):
        path = month / name
        try:
            if JOINED.fullmatch(name):
                yield from runs_in(path, folder)
            else:
                kept = kept_at(folder, path)
                if kept is not None:
                    yield kept
        except (FileNotFoundError, HistoryVersionError):
            raise
        except UNREADABLE as error:
            raise KeptFileError(path, error) from error


def _names(folder: Path) -> list[str]:
    """What is in a folder; nothing if there is none.

    Raises FileNotFoundError if another folder has taken its place meanwhile: files of the old one
    may have been removed before their names were read.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        names = sorted(os.listdir(fd))  # noqa: PTH208 - a descriptor
        if not os.path.samestat(os.fstat(fd), folder.stat()):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    finally:
        os.close(fd)
    return names
