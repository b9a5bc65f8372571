"""Places of a queue that hold no message on purpose.

``store repair`` puts a tombstone in the place of a record that is lost, and repair, rebuild and
recovery put a pre-blank in the place of a unit. The store says by them that no message is there;
units and records that contradict each other are damage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK
from storage.format.record import CheckKind, check_record, decode_record
from storage.format.tombstone import is_replaced

if TYPE_CHECKING:
    from storage.readonly import StoreView

_FILLER: Final = CQ_STORE_UNIT.unpack(PRE_BLANK)
_UNITS: Final = 4096


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
        for unit in units:
            count += unit == _FILLER or (unit[1] > 0 and is_tombstone(view, unit[0]))
        start += len(units) or _UNITS
    return count
