"""Keeping what is whole of the key index after an abnormal exit.

RocketMQ deletes each index file that its checkpoint does not vouch for and adds the keys again that
recovery meets; keys of older messages are lost (IndexService.load). But entries are written one
behind the other into zeroed space, so the whole ones are a prefix, and slots follow from entries:
the prefix is kept, the slots are made anew, and keys are added from the last kept record on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .format.index import (
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
    slot_position,
)
from .format.names import INDEX
from .format.record import RecordError, read_head

if TYPE_CHECKING:
    from numpy import ndarray

    from .config import StoreConfig
    from .fs import FileSystem
    from .index import IndexWriter
    from .mapped_file_queue import MappedFileQueue


class _Prefix(NamedTuple):
    """The whole entries of a file, from entry 1 on."""

    entries: ndarray
    whole: bool
    """Whether that is all that the header speaks of."""


class IndexRecovery:
    """Checks the files that the checkpoint does not vouch for; needs the gate."""

    def __init__(
        self,
        fs: FileSystem,
        root: Path,
        config: StoreConfig,
        index: IndexWriter,
        log: MappedFileQueue,
    ) -> None:
        self._fs = fs
        self._folder = root / INDEX
        self._slots = config.max_hash_slot_num
        self._size = config.index_file_size
        self._index = index
        self._log = log

    def run(self, vouched_timestamp: int, log_end: int) -> list[str]:
        """Mend the files; gives notes. Afterwards the newest file's header says where to go on."""
        notes = []
        names = self._index.names_ending_after(vouched_timestamp)
        for number, name in enumerate(names):
            newest = number + 1 == len(names)
            note = self._mend(self._folder / name, log_end, newest=newest)
            if note is None:
                continue
            notes.append(note)
            for later in names[number + 1 :]:
                self._index.delete(later)
                notes.append(f"{self._folder / later}: follows a damaged file, made anew")
            break
        return notes

    def _mend(self, path: Path, log_end: int, *, newest: bool) -> str | None:
        """Mend one file in place, or remove it; None if all that it spoke of was whole."""
        if path.stat().st_size != self._size:
            self._index.delete(path.name)
            return f"{path}: its length is not that of the store's index files, made anew"
        fd = self._fs.open(path, writable=True)
        try:
            header = IndexHeader.unpack_from(self._fs.read(fd, INDEX_HEADER_SIZE, 0))
            prefix = self._prefix(fd, header, log_end)
            # A record may have lost some of its keys with the end of the newest file; a record
            # whose keys go on in the next file is whole in this one.
            full = prefix.whole and not newest
            kept = prefix.entries if full else self._without_last_record(prefix)
            if not len(kept) or header.begin_timestamp <= 0:
                self._index.delete(path.name)
                return f"{path}: no whole entries, made anew"
            self._rewrite(fd, header, kept)
        finally:
            self._fs.close(fd)
        if prefix.whole:
            return None
        return f"{path}: kept {len(kept)} of {header.index_count - 1} keys, the rest made anew"

    def _prefix(self, fd: int, header: IndexHeader, log_end: int) -> _Prefix:
        import numpy as np

        count = max(0, (self._size - entry_position(self._slots, 1)) // INDEX_ENTRY_SIZE)
        # The header may be older or newer on the device than the entries: look a window further.
        count = min(count, header.next_entry - 1 + 65_536)
        start = entry_position(self._slots, 1)
        data = self._fs.read(fd, count * INDEX_ENTRY_SIZE, start)
        entry = np.dtype([("hash", ">i4"), ("offset", ">i8"), ("diff", ">i4"), ("previous", ">i4")])
        entries = np.frombuffer(data[: len(data) // entry.itemsize * entry.itemsize], entry)
        offsets = entries["offset"].astype(np.int64)
        numbers = np.arange(1, len(entries) + 1)
        good = (offsets >= 0) & (offsets < log_end) & (entries["hash"] >= 0)
        good &= (entries["previous"] >= 0) & (entries["previous"] < numbers)
        good[1:] &= offsets[1:] >= offsets[:-1]
        good &= (offsets > 0) | (entries["hash"] != 0)
        length = len(entries) if good.all() else int(good.argmin())
        return _Prefix(entries[:length], length >= header.next_entry - 1)

    def _without_last_record(self, prefix: _Prefix) -> ndarray:
        """Drop the newest record's keys: some of them may be missing."""
        entries = prefix.entries
        if not len(entries):
            return entries
        return entries[: int((entries["offset"] < entries["offset"][-1]).sum())]

    def _rewrite(self, fd: int, header: IndexHeader, kept: ndarray) -> None:
        """Make slots and header say exactly the kept entries, and zero the entries behind them."""
        import numpy as np

        slots = np.zeros(self._slots, ">i4")
        used = kept["hash"].astype(np.int64) % self._slots
        slots[used] = np.arange(1, len(kept) + 1)  # the last one of a slot stays
        last = int(kept["offset"][-1])
        renewed = header._replace(
            end_timestamp=self._store_timestamp(last) or header.end_timestamp,
            end_phy_offset=last,
            hash_slot_count=int(np.count_nonzero(slots)),
            index_count=len(kept) + 1,
        )
        self._fs.write(fd, slots.tobytes(), slot_position(0))
        behind = entry_position(self._slots, len(kept) + 1)
        for first, end in self._fs.data_ranges(fd, behind, self._size):
            self._fs.write(fd, bytes(end - first), first)
        self._fs.write(fd, renewed.pack(), 0)

    def _store_timestamp(self, commitlog_offset: int) -> int | None:
        file = self._log.find(commitlog_offset)
        if file is None:
            return None
        try:
            head = read_head(file.read(commitlog_offset - file.file_from_offset, 128))
        except RecordError:
            return None
        return head.store_timestamp
