"""Joining the files of many runs: one for each table and month, or day.

A joined file is made beside the folder of its table and month, and then takes the place of the
small ones: see ``swapping``. Files that cannot be read stay as they are. Rows are read and written
some 100,000 at a time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from analytics.errors import CompactionRunsError, HistoryVersionError, KeptFileError
from storage.files.creating import replacing

from .reading import UNREADABLE, opened_parquet, read_part, runs_in, runs_of
from .swapping import (
    LISTING_S,
    STAGING,
    Join,
    OldFolders,
    finish_killed,
    inode_of,
    remove_1,
    swap,
)
from .tables import (
    JOINED,
    TABLES,
    Kept,
    arrow,
    as_of_in,
    date_of,
    kept_at,
    schema,
    whole_table,
    with_added,
)

ROWS: Final = 1 << 17
"""Of a row group: a reader of one run reads a few of them."""

Warn = Callable[[str], object]


class Joined(NamedTuple):
    """What was done."""

    files: int
    """How many files were joined; others could not be read."""
    rows: int
    size: int
    """Bytes of the new files."""


def plan(folder: str, now_ms: int, *, by_day: bool = False) -> list[Join]:
    """What a compaction joins: the files of months (or days) before that of ``now_ms``, in UTC.

    Files of version 1 are joined whatever their day, as other programs cannot read them together
    with those of version 2. Single files stay. Raises OSError.
    """
    today = f"{date_of(now_ms):%Y-%m-%d}"
    found = []
    for table in TABLES:
        months: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
        old = set()
        for path in _files_1(Path(folder, table)):
            day = path.parent.name.removeprefix("date=")
            months[day[:7]][day if by_day else day[:7]].append(path)
            old.add(path)
        for live in sorted(Path(folder, table).glob("month=*")):
            month = live.name.removeprefix("month=")
            for path in sorted(live.iterdir()):
                period = _period(path, by_day=by_day)
                if period is not None:
                    months[month][period].append(path)
        for month, periods in sorted(months.items()):
            due = {
                period: files
                for period, files in sorted(periods.items())
                if not old.isdisjoint(files) or (len(files) > 1 and period < today[: len(period)])
            }
            if due:
                found.append(Join(folder, table, month, due))
    return found


@contextmanager
def compacting(folder: str, *, listing_s: float = LISTING_S) -> Iterator[OldFolders]:
    """Keep other compactions of the folder out, and finish what a killed one has left.

    Gives what :func:`join` needs. Its end waits until the folders that were exchanged last are
    ``listing_s`` seconds old, and removes them; after an error or Ctrl-C it does not wait, and the
    next compaction removes them. Raises CompactionRunsError and OSError.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CompactionRunsError(folder) from None
        except OSError:  # a file system that has no such locks
            pass
        finish_killed(folder)
        old = OldFolders(folder, listing_s)
        try:
            yield old
            old.settle_all()
        except BaseException:  # KeyboardInterrupt, too: it is raised again, without the wait
            old.settle_due()
            raise
        finally:
            for place in (*Path(folder, STAGING).glob("*"), Path(folder, STAGING)):
                with suppress(OSError):
                    place.rmdir()
    finally:
        os.close(fd)


def join(one: Join, warn: Warn, old: OldFolders) -> Joined:
    """Join the files of a table and month; within :func:`compacting`, which gives ``old``.

    Calls ``warn`` with a sentence for each file that cannot be read, which stays. Raises OSError
    and KeptFileError; then each row is where it was, or joined.
    """
    old.settle_due()
    staged = one.staged
    started = time.time_ns()
    staged.mkdir(parents=True)
    sources: dict[Path, int] = {}
    rows = size = 0
    made = []
    try:
        for period, files in one.periods.items():
            path = staged / f"joined-{period}-{uuid4().hex}.parquet"
            taken, count = _write(path, one, files, warn)
            if not taken:
                path.unlink()
                continue
            # A part that is newer than this has been written since: see _is_done.
            os.utime(path, ns=(started, started))
            sources |= taken
            rows += count
            size += path.stat().st_size
            made.append(path)
    except BaseException:
        shutil.rmtree(staged)
        raise
    if made:
        swap(one, made, sources, old)
        remove_1(one, sources)
    else:
        shutil.rmtree(staged)
    return Joined(len(sources), rows, size)


def _period(path: Path, *, by_day: bool) -> str | None:
    """The day or month that a file is joined into; None for a file that stays."""
    joined = JOINED.fullmatch(path.name)
    if joined is not None:
        if not by_day:
            return joined[1][:7]
        return joined[1] if len(joined[1]) > len("2026-11") else None
    as_of = as_of_in(path)
    if as_of is None:
        return None
    return f"{date_of(as_of):%Y-%m-%d}" if by_day else f"{date_of(as_of):%Y-%m}"


def _files_1(table: Path) -> list[Path]:
    """The files of version 1 of a table."""
    found = table.glob("broker=*/date=????-??-??/part-*.parquet")
    return sorted(path for path in found if as_of_in(path) is not None)


def _write(path: Path, one: Join, files: Sequence[Path], warn: Warn) -> tuple[dict[Path, int], int]:
    """Write the rows of files into one; gives the files with their inodes, and how many rows."""
    pyarrow = arrow()
    wanted = schema(pyarrow, one.table)
    inodes = {file: inode for file in files if (inode := inode_of(file)) is not None}
    owners, readable = _owners(one, list(inodes), warn)
    taken: dict[Path, int] = {}
    waiting: list[Any] = []
    held = count = 0
    with replacing(path) as file, pyarrow.parquet.ParquetWriter(file, wanted) as writer:
        for source in readable:
            try:
                for table in _tables(one, source, owners):
                    waiting.append(table)
                    held += table.num_rows
                    count += table.num_rows
                    while held >= ROWS:
                        together = pyarrow.concat_tables(waiting)
                        writer.write_table(together.slice(0, ROWS), ROWS)
                        waiting, held = [together.slice(ROWS)], held - ROWS
            except FileNotFoundError:
                continue  # removed meanwhile
            except UNREADABLE as error:
                _warn_of(source, error, warn)
            else:
                taken[source] = inodes[source]
        if held:
            writer.write_table(pyarrow.concat_tables(waiting), ROWS)
    with path.open("rb") as file:
        assert opened_parquet(file, path).metadata.num_rows == count
    return taken, count


def _owners(one: Join, files: Sequence[Path], warn: Warn) -> tuple[dict[Kept, Path], list[Path]]:
    """The file of each run, and the files that can be read, in the order in which they are written.

    A run's own file counts before a joined one, and of joined ones the last.
    """
    owners: dict[Kept, Path] = {}
    readable: list[tuple[str, Path]] = []
    joined = [file for file in files if JOINED.fullmatch(file.name)]
    parts = [file for file in files if not JOINED.fullmatch(file.name)]
    parts.sort(key=lambda file: file.parent != one.live)  # those of version 1 last
    for file in parts:
        try:
            kept = _kept_at(one, file)
            if joined:  # a damaged part must not take the place of the run's joined rows
                read_part(file, one.table)
        except UNREADABLE as error:
            _warn_of(file, error, warn)
            continue
        owners.setdefault(kept, file)
        readable.append((f"{kept.as_of:020d} {kept.broker} {kept.number}", file))
    for file in sorted(joined, key=lambda file: -file.stat().st_mtime_ns):
        try:
            runs = runs_in(file, one.folder)
        except UNREADABLE as error:
            _warn_of(file, error, warn)
            continue
        for kept in runs:
            owners.setdefault(kept, file)
        readable.append((f"{min((kept.as_of for kept in runs), default=0):020d}", file))
    return owners, [file for _, file in sorted(readable)]


def _kept_at(one: Join, part: Path) -> Kept:
    kept = kept_at(one.folder, part)
    assert kept is not None
    return kept


def _warn_of(file: Path, error: Exception, warn: Warn) -> None:
    """Say that a file cannot be read. Raises KeptFileError for one that the system refuses, and for
    a joined one, of which some rows may have been taken."""
    if JOINED.fullmatch(file.name) or (isinstance(error, OSError) and error.errno is not None):
        raise KeptFileError(file, error) from error
    text = str(error) if isinstance(error, HistoryVersionError) else str(KeptFileError(file, error))
    warn(f"{text}; it stays as it is")


def _tables(one: Join, source: Path, owners: Mapping[Kept, Path]) -> Iterator[Any]:
    """The rows of a file whose runs it is the owner of, as joined files have them."""
    pyarrow = arrow()
    if not JOINED.fullmatch(source.name):
        kept = _kept_at(one, source)
        if owners[kept] == source:
            yield whole_table(pyarrow, one.table, read_part(source, one.table), kept)
        return
    wanted = schema(pyarrow, one.table)
    with source.open("rb") as file:
        opened = opened_parquet(file, source)
        for number in range(opened.num_row_groups):
            table = with_added(pyarrow, one.table, opened.read_row_group(number))
            for kept in runs_of(table, one.folder):
                if owners[kept] != source:
                    table = table.filter(_is_other(table, kept))
            yield table.select(wanted.names).cast(wanted)


def _is_other(table: Any, kept: Kept) -> Any:
    compute = arrow().compute
    return compute.or_(
        compute.not_equal(table.column("as_of"), kept.as_of),
        compute.or_(
            compute.not_equal(table.column("broker"), kept.broker),
            compute.not_equal(table.column("store_number"), kept.number),
        ),
    )
