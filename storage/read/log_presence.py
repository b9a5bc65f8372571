"""Distinguishing a log that ends from one whose last files are missing from its folder.

A record is stored before its unit is, after any exit. So where queues hold units of offsets for
which there is no log file, the files are lost, or lie in other folders, where RocketMQ's
``storePathCommitLog`` puts them. Taking the log's end for the store's end then would cut off all
these units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.errors import CorruptFileError
from storage.format.names import COMMITLOG
from storage.index.reader import IndexReader
from storage.queue.written_end import QueueTail, tails_of

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.files.read_files import ReadOnlyFiles, StoreFiles

_FARTHEST: Final = 1 << 50
"""A petabyte of messages."""


class MissingLog(NamedTuple):
    """A part of the log that units refer to and no file holds, in bytes of the commit log."""

    start: int
    known_end: int
    """The log went at least this far."""

    def sentence(self) -> str:
        """A sentence about what is missing, and where it may be."""
        return (
            f"the queues know of messages up to byte {self.known_end} of the log, whose files end "
            f"at byte {self.start}: the others are lost, or in another folder (storePathCommitLog)"
        )


def check_log_is_here(files: StoreFiles, config: StoreConfig) -> None:
    """Raise CorruptFileError if the log lacks files that the queues know of; nothing is changed."""
    missing = missing_log(files, config, tails_of(files))
    if missing is not None:
        raise CorruptFileError(
            files.root / COMMITLOG,
            missing.start,
            f"{missing.sentence()}; bring them back, or give them up with 'rmqctl store repair'",
        )


def missing_log(
    files: StoreFiles, config: StoreConfig, tails: Iterable[QueueTail]
) -> MissingLog | None:
    """Give what the log lacks according to the newest units of the queues, None if nothing.

    One unit alone may be damaged: it is believed if another one, or the index, agrees, or if there
    is no log file at all.
    """
    log = files.log
    log.relist()
    ends = _ends_past(_end_of(log), config, tails)
    if not ends:
        return None
    present = log.relist()  # a broker beside us may have made the file after the first listing
    start = _end_of(log)
    ends = [end for end in ends if end > start]
    if not ends or (present and len(ends) == 1 and _index_end(files, config) <= start):
        return None
    return MissingLog(start, max(ends))


def _ends_past(log_end: int, config: StoreConfig, tails: Iterable[QueueTail]) -> list[int]:
    """Ends of records after the log's files, of the last two units of each queue.

    Offsets that no log reaches, and lengths that no record has, are bytes of a damaged queue.
    """
    longest = config.max_message_size + (64 << 10)
    ends = []
    for tail in tails:
        for queue_offset in range(tail.next_offset - 1, tail.next_offset - 3, -1):
            offset, size, _ = tail.unit(queue_offset)
            if log_end <= offset < _FARTHEST and 0 < size <= longest:
                ends.append(offset + size)
    return ends


def _end_of(log: ReadOnlyFiles) -> int:
    """End of the last file; an empty file does not count: nothing was ever stored in it."""
    for first in reversed(log.offsets()):
        if log.at(first) is not None:
            return first + log.file_size
    return 0


def _index_end(files: StoreFiles, config: StoreConfig) -> int:
    """Log offset of the newest record with a key, -1 if no index file has one."""
    index = IndexReader(files.root, config)
    headers = [index.header(name) for name in index.names()[-1:]]
    return max((header.end_phy_offset for header in headers if header is not None), default=-1)
