"""Parts of the log: how it is divided for a check, and the results of a part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.layout import MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2
from storage.format.record import CheckKind, check_record, read_head

from .reported import Reported

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles

LogRange = tuple[int, int]
"""First and last (exclusive) commit log offset of a part."""

_LARGEST: Final = 64 << 20
_MOST_PARTS: Final = 4096
_PARTS_EACH: Final = 16
"""Parts for each process: enough that no process waits long for the last one."""
_WINDOW: Final = 8 << 20
"""How far a record is searched for; none is so long."""
_MAGICS: Final = tuple(
    magic.to_bytes(4, "big", signed=True) for magic in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2)
)


class LogPart(NamedTuple):
    """Results of the walk through a part of the log; it ends at ``end`` or beyond."""

    start: int
    end: int
    last_record: int | None
    reported: Reported
    records: int
    begins_well: bool
    """Whether it begins with whole records in their places."""
    first_timestamp: int
    last_timestamp: int
    newest_timestamp: int
    back_steps: int
    misplaced: tuple[int, int, int, int]
    has_misplaced: bool
    replaced: list[int]
    empty: list[int]


def split_log(log: ReadOnlyFiles, start: int, log_end: int, jobs: int) -> list[LogRange]:
    """Divide [start, log_end) for some processes, where records begin.

    A place that only looks like a record costs time, because no walk through the part before it
    will end there; nothing else depends on it.
    """
    length = log_end - start
    least = -(-length // _MOST_PARTS)
    size = max(1, least, min(_LARGEST, length // (_PARTS_EACH * jobs)))
    borders = [start]
    for wanted in range(start + size, log_end, size):
        border = _record_at_or_after(log, max(wanted, borders[-1] + 1), log_end)
        if border is not None and border > borders[-1]:
            borders.append(border)
    return list(zip(borders, [*borders[1:], log_end], strict=True))


def _record_at_or_after(log: ReadOnlyFiles, offset: int, log_end: int) -> int | None:
    """Where a whole record with the right offset begins; None if none does nearby."""
    position = offset % log.file_size
    first = offset - position
    file = log.at(first)
    if file is None:
        return None
    limit = min(file.length, log_end - first)
    if position == 0 and _is_record(file.view, first, 0, limit):
        return first
    data = file.map[position : min(limit, position + _WINDOW)]
    for magic in _MAGICS:
        at = data.find(magic)
        while at >= 0:
            candidate = position + at - 4
            if candidate >= position and _is_record(file.view, first, candidate, limit):
                return first + candidate
            at = data.find(magic, at + 1)
    return None


def _is_record(view: memoryview, first: int, position: int, limit: int) -> bool:
    found = check_record(view, position, limit)
    return (
        found.kind is CheckKind.MESSAGE
        and read_head(view, position).physical_offset == first + position
    )
