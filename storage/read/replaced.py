"""Places of a queue that hold no message on purpose.

``store repair`` puts a tombstone in the place of a record that is lost, and repair, rebuild and
recovery put a pre-blank in the place of a unit. The store says by them that no message is there;
units and records that contradict each other are damage.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from storage.configs.journal import Journal
from storage.errors import RocketMQError
from storage.files.bounded import read_bounded
from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK
from storage.format.names import OURS
from storage.format.record import CheckKind, check_record, decode_record
from storage.format.tombstone import REPLACED_FLAG, is_replaced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from storage.readonly import StoreView

_FILLER: Final = CQ_STORE_UNIT.unpack(PRE_BLANK)
_UNITS: Final = 4096
_REPAIR: Final = b'"what":"repair"'
_MARK_AT: Final = 36
"""Where a record has the first byte of its sysFlag, in which the mark of tombstones is."""
_MARK: Final = REPLACED_FLAG >> 24


def is_tombstone(view: StoreView, commitlog_offset: int) -> bool:
    """Whether a repair has replaced the record that begins at a commit log offset."""
    log = view.files.log
    position = commitlog_offset % log.file_size
    first = commitlog_offset - position
    file = log.at(first) if 0 <= commitlog_offset < view.log_max_offset() else None
    if file is None:
        return False
    found = check_record(file.view, position, min(file.length, view.log_max_offset() - first))
    if found.kind is not CheckKind.MESSAGE:
        return False
    message = decode_record(file.view, position, found.size)
    return message.commitlog_offset == commitlog_offset and is_replaced(
        message.sys_flag, message.stored_body
    )


def places_without_message(view: StoreView, topic: str, queue_id: int, start: int, end: int) -> int:
    """Count the tombstones and pre-blanks of a queue, from one queue offset to another."""
    count = 0
    while start < end:
        units = view.units(topic, queue_id, start, min(_UNITS, end - start))
        count += len(without_message(view, units))
        start += len(units) or _UNITS
    return count


def was_repaired(root: Path) -> bool:
    """Whether a store may have tombstones: only a repair makes some, and notes it in the journal.

    True where the journal is gone or cannot be read. False without a folder ``rmqctl``: then no
    process of ours has written here.
    """
    try:
        if not (root / OURS).exists():
            return False
        files = Journal(root).files()
        if not files:
            return True
        for path in files:
            status = path.stat()
            if _has_repair(path, status.st_size, status.st_mtime_ns):
                return True
    except (OSError, RocketMQError):
        return True
    return False


@lru_cache(maxsize=256)
def _has_repair(path: Path, size: int, modified_ns: int) -> bool:
    """Whether a file of the journal has a repair; a file is read again when it has changed."""
    return _REPAIR in read_bounded(path)


def pre_blanks(units: Sequence[tuple[int, int, int]]) -> list[int]:
    """The indexes of units that are pre-blanks."""
    return [index for index, unit in enumerate(units) if unit == _FILLER]


def without_message(view: StoreView, units: Sequence[tuple[int, int, int]]) -> list[int]:
    """The indexes of units that are pre-blanks or name tombstones.

    A microsecond a unit, and the page of each record: most have no mark of a tombstone.
    """
    log, log_end = view.files.log, view.log_max_offset()
    found = []
    file_size = log.file_size
    first = -1
    data: bytes | memoryview = b""
    for index, unit in enumerate(units):
        offset, size, _ = unit
        if unit == _FILLER:
            found.append(index)
        elif size > 0 and 0 <= offset < log_end:
            position = offset % file_size
            if offset - position != first:
                first = offset - position
                file = log.at(first)
                data = b"" if file is None else file.view
            at = position + _MARK_AT
            if at < len(data) and data[at] & _MARK and is_tombstone(view, offset):
                found.append(index)
    return found
