"""The commit log and the consume queues of a store, as far as they lie before a cut.

The cut is an offset of the log at which a record ends. Bytes and units before it never change, so
they can be copied while others append. Retention may delete the oldest files meanwhile: then
everything older is left out as well, as if it had run before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from storage.files.checksum import Tick, no_tick
from storage.files.creating import make_folders
from storage.files.fs import FileSystem
from storage.files.read_files import StoreFiles
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.names import COMMITLOG, CONSUMEQUEUE, file_name, parse_file_name

from .file_copy import FileCopier

if TYPE_CHECKING:
    from storage.config import StoreConfig


def place_log(
    root: Path, stage: Path, config: StoreConfig, cut: int, placer: FileCopier, tick: Tick = no_tick
) -> int:
    """Copy the log before ``cut``; gives how many files were deleted meanwhile."""
    size = config.mapped_file_size_commit_log
    out = stage / COMMITLOG
    make_folders(out)

    def place(source: Path, target: Path) -> bool:
        first = int(source.name)
        if first + size <= cut:
            placer.whole(source, target, tick)
        else:
            placer.part(source, target, cut - first, tick)
        return True

    return _place_row(root / COMMITLOG, out, cut, place)


def place_queues(root: Path, stage: Path, config: StoreConfig, cut: int, placer: FileCopier) -> int:
    """Copy the units of records before ``cut``; gives how many files were deleted meanwhile."""
    make_folders(stage / CONSUMEQUEUE)

    def place(source: Path, target: Path) -> bool:
        units, full = _units_before(source, cut)
        if full:
            placer.whole(source, target)
        elif units:
            placer.part(source, target, units * CQ_STORE_UNIT_SIZE)
        return units > 0

    deleted = 0
    for topic, queue_id in StoreFiles(root, config).queue_folders():
        folder = root / CONSUMEQUEUE / topic / str(queue_id)
        out = stage / CONSUMEQUEUE / topic / str(queue_id)
        make_folders(out)
        deleted += _place_row(folder, out, None, place)
        if not folder.exists() and not any(out.iterdir()):  # its topic was deleted
            out.rmdir()
    return deleted


def _place_row(
    folder: Path, out: Path, before: int | None, place: Callable[[Path, Path], bool]
) -> int:
    """Copy the files of a row, oldest first; a missing one excludes those before it."""
    try:
        names = (parse_file_name(path.name) for path in folder.iterdir())
        offsets = sorted(offset for offset in names if offset is not None)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    placed: list[Path] = []
    deleted = 0
    for first in offsets:
        if before is not None and first >= before:
            break
        target = out / file_name(first)
        try:
            if place(folder / target.name, target):
                placed.append(target)
        except FileNotFoundError:
            for older in placed:
                older.unlink()
            deleted += len(placed) + 1
            placed = []
    return deleted


def _units_before(path: Path, cut: int) -> tuple[int, bool]:
    """How many units of a file are of records before ``cut``, and whether that is all it holds."""
    import numpy as np

    with path.open("rb") as file:
        length = file.seek(0, 2)
        end = length - CQ_STORE_UNIT_SIZE
        if end >= 0 and not length % CQ_STORE_UNIT_SIZE:
            file.seek(end)
            offset, size, _ = CQ_STORE_UNIT.unpack(file.read(CQ_STORE_UNIT_SIZE))
            if 0 < size < PRE_BLANK_SIZE and 0 <= offset <= cut - size:
                return length // CQ_STORE_UNIT_SIZE, True
        ranges = FileSystem().data_ranges(file.fileno(), 0, length)
        file.seek(0)
        data = file.read(ranges[-1][1]) if ranges else b""
    unit = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
    units = np.frombuffer(data[: len(data) // unit.itemsize * unit.itemsize], unit)
    offsets, sizes = units["offset"].astype(np.int64), units["size"].astype(np.int64)
    before = (offsets >= 0) & (sizes > 0)
    before &= (offsets + sizes <= cut) | (sizes == PRE_BLANK_SIZE)
    found = np.flatnonzero(before)
    return (int(found[-1]) + 1 if len(found) else 0), False
