"""The key index of a store without the keys of records past a cut.

Writers store entries, then slots, then the header. A copy that is read in the reverse order
(header, slots, entries) finds each entry whole that one of its slots names. Entries are in the
order of the log, so those past the cut are the last ones, and a slot that names one is set back
along the chain.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.files.creating import make_folders
from storage.files.fs import FileSystem
from storage.format.index_file import (
    HASH_SLOT_SIZE,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexEntry,
    IndexHeader,
    entry_position,
    slot_position,
)
from storage.format.names import INDEX, is_index_file_name

from .file_copy import FileCopier, set_times

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.readonly import StoreView

_CHUNK: Final = 1 << 20


def place_index(
    view: StoreView, stage: Path, cut: int, fs: FileSystem, placer: FileCopier, *, closed: bool
) -> int:
    """Copy the index files; gives how many were deleted meanwhile.

    Keys of the last records may be in no file yet; recovery adds them when the copy is opened.
    ``closed``: no process writes, and the store was closed cleanly.
    """
    folder, out = view.root / INDEX, stage / INDEX
    make_folders(out)
    try:
        names = sorted(path.name for path in folder.iterdir() if is_index_file_name(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return 0
    deleted = 0
    placed: list[Path] = []
    for name in names:
        try:
            if closed:
                placer.part(folder / name, out / name)
            else:
                _place(view, folder / name, out / name, cut, fs, placer)
            placed.append(out / name)
        except FileNotFoundError:
            deleted += 1 + len(placed)
            for older in placed:
                older.unlink(missing_ok=True)
            placed = []
    return deleted


def _place(
    view: StoreView, source: Path, target: Path, cut: int, fs: FileSystem, placer: FileCopier
) -> None:
    config = view.config
    fd = fs.open(source, writable=False)
    try:
        if fs.size(fd) != config.index_file_size:
            placer.part(source, target)  # damaged: as it is
            return
        header = IndexHeader.unpack_from(fs.read(fd, INDEX_HEADER_SIZE, 0))
        count = _count_before(fs, fd, config, header, cut)
        if count == header.next_entry == config.max_index_num:
            placer.whole(source, target)
        elif count > 1:
            _copy(view, fs, fd, target, header, count)
    finally:
        fs.close(fd)


def _count_before(
    fs: FileSystem, fd: int, config: StoreConfig, header: IndexHeader, cut: int
) -> int:
    """Number of the first entry past the cut, or of the next free one."""
    low, high = 1, min(header.next_entry, config.max_index_num)
    while low < high:
        middle = (low + high) // 2
        if _entry(fs, fd, config, middle).commitlog_offset < cut:
            low = middle + 1
        else:
            high = middle
    return low


def _entry(fs: FileSystem, fd: int, config: StoreConfig, number: int) -> IndexEntry:
    at = entry_position(config.max_hash_slot_num, number)
    return IndexEntry.unpack_from(fs.read(fd, INDEX_ENTRY_SIZE, at))


def _copy(
    view: StoreView, fs: FileSystem, fd: int, target: Path, header: IndexHeader, count: int
) -> None:
    import numpy as np

    config = view.config
    total = config.max_hash_slot_num
    slots = np.frombuffer(fs.read(fd, total * HASH_SLOT_SIZE, slot_position(0)), ">i4").copy()
    most = min(header.next_entry, config.max_index_num) - 1
    for slot in np.flatnonzero(slots >= count):
        number = int(slots[slot])
        if number > most:  # damaged: no entry has this number
            number = 0
        while number >= count:
            before = _entry(fs, fd, config, number).previous
            number = before if 0 < before < number else 0
        slots[slot] = number
    last = _entry(fs, fd, config, count - 1)
    end_timestamp = header.end_timestamp
    if count < header.next_entry:
        message = view.look_message_by_offset(last.commitlog_offset)
        if message is not None:
            end_timestamp = message.store_timestamp
    renewed = header._replace(
        end_timestamp=end_timestamp,
        end_phy_offset=last.commitlog_offset,
        hash_slot_count=int(np.count_nonzero(slots > 0)),
        index_count=count,
    )
    out = fs.open(target, writable=True, create=True)
    try:
        data = slots.tobytes()
        for at in range(0, len(data), _CHUNK):
            part = data[at : at + _CHUNK]
            if any(part):
                fs.write(out, part, slot_position(0) + at)
        start, end = entry_position(total, 1), entry_position(total, count)
        for at in range(start, end, _CHUNK):
            fs.write(out, fs.read(fd, min(_CHUNK, end - at), at), at)
        fs.write(out, renewed.pack(), 0)
        fs.set_length(out, config.index_file_size)
        set_times(out, os.fstat(fd).st_mtime_ns)
    finally:
        fs.close(out)
