"""Rebuilding the key index from the log.

The files are the same byte for byte as those of the broker that wrote the log, as far as the log
still has the records, or the old files have sane entries of the deleted ones. They differ where a
broker has put keys twice or not at all after a crash, where files before the oldest one are gone
(then the division into files differs), and in names where no old file begins with the same record.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from storage.files.fs import FileSystem
from storage.record_batch.queue_numbers import QueueNames

from .index_build import IndexBuild
from .index_files import ComparedIndex, WrittenIndex
from .keys import keys_of
from .log_units import LogRuns, Progress
from .old_index import OldIndexFile, index_file_names, old_index_files

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from storage.format.index_file import IndexHeader
    from storage.readonly import StoreView


class RebuiltIndexFile(NamedTuple):
    """An index file as it is and as it will be. Keys are counted by the headers."""

    name: str
    keys_before: int | None
    """None if there is no such file."""
    keys_after: int | None
    """None if there will be none."""
    log_from: int | None
    """Commit log offsets of the first and the last key's record, in the new file."""
    log_to: int | None
    is_same: bool
    """Whether it holds what it should, byte for byte."""


def plan_index(
    view: StoreView, *, beside_writers: bool = False, progress: Progress | None = None
) -> list[RebuiltIndexFile]:
    """Compare the index with the log and give what rebuilding would change. Writes nothing.

    Rows by name. ``beside_writers`` leaves the newest file out if it is there: it changes.
    ``progress`` is called with bytes done and bytes in all. Reads the whole log; raises OSError.
    """
    rows = _rebuild(view, FileSystem(), None, progress)
    if not beside_writers or not rows:
        return rows
    names = {row.name for row in rows}
    has_come = any(name not in names for name in index_file_names(view.root))
    return rows[:-1] if has_come or rows[-1].keys_before is not None else rows


def rebuild_index(
    view: StoreView,
    out: Path,
    *,
    progress: Progress | None = None,
    fs: FileSystem | None = None,
) -> list[RebuiltIndexFile]:
    """The same, and make the files that differ as ``out/<name>``.

    They are on the device when this returns. ``out`` is an empty folder on the store's file system.
    For a store that no process writes meanwhile.
    """
    fs = fs or FileSystem()
    written = WrittenIndex(fs, out, view.config)
    try:
        rows = _rebuild(view, fs, written, progress)
    finally:
        written.close()
    for row in rows:
        if row.is_same:
            fs.unlink(out / row.name)
    fs.sync_dir(out)
    return rows


class _Tee:
    """Compares and writes files."""

    def __init__(self, compared: ComparedIndex, written: WrittenIndex) -> None:
        self._sinks = (compared, written)

    def begin(self, name: str) -> None:
        for sink in self._sinks:
            sink.begin(name)

    def put(self, first: int, entries: NDArray[Any]) -> None:
        for sink in self._sinks:
            sink.put(first, entries)

    def end(self, header: IndexHeader, slots: memoryview) -> None:
        for sink in self._sinks:
            sink.end(header, slots)


def _rebuild(
    view: StoreView,
    fs: FileSystem,
    written: WrittenIndex | None,
    progress: Progress | None,
) -> list[RebuiltIndexFile]:
    old = old_index_files(view.root, view.config)
    compared = ComparedIndex(fs, view.config, old)
    build = IndexBuild(view.config, old, compared if written is None else _Tee(compared, written))
    for file in old:
        deleted = file.deleted(view.log_min_offset())
        if deleted is None:
            break
        build.take_over(deleted)
        if deleted.whole is None:
            break
    names = QueueNames()
    log = view.files.apart().log
    for block, _ in LogRuns(log, view.log_max_offset(), names, progress):
        build.take(keys_of(block))
    build.finish()
    return _rows(old, compared)


def _rows(old: list[OldIndexFile], compared: ComparedIndex) -> list[RebuiltIndexFile]:
    before = {file.name: file.keys for file in old}
    rows = []
    for name in sorted(before.keys() | compared.headers.keys(), key=int):
        header = compared.headers.get(name)
        rows.append(
            RebuiltIndexFile(
                name,
                before.get(name),
                None if header is None else header.index_count - 1,
                None if header is None else header.begin_phy_offset,
                None if header is None else header.end_phy_offset,
                header is not None and name not in compared.differing,
            )
        )
    return rows
