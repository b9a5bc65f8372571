"""Whose word counts when a record and a unit contradict each other: the log's order tells.

Records of one queue lie in the log in the order of their queue offsets. A record that fits between
its neighbours is right, and the unit is wrong; else its head is damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from storage.format.record import decode_record
from storage.reading.log_walk import LogWalk, StretchKind

if TYPE_CHECKING:
    from storage.files.read_files import FileRow


class _Own(NamedTuple):
    place: int
    queue_offset: int


def fitting_records(
    log: FileRow, first: int, end: int, suspects: set[int]
) -> dict[int, tuple[str, int]]:
    """Which of the records at ``suspects`` fit into their queue's order, with the queue they name.

    Looks at the whole records of the file that begins at ``first``, up to ``end``.
    """
    file = log.at(first)
    if file is None or not suspects:
        return {}
    named: dict[int, tuple[str, int]] = {}
    queues: dict[tuple[str, int], list[_Own]] = {}
    walk = LogWalk(log, first, limit=end, check_crc=False, search_all=True)
    while (stretch := walk.next()) is not None:
        if stretch.kind is not StretchKind.RECORDS:
            continue
        start = stretch.start
        for size in stretch.sizes:
            message = decode_record(file.view, start - first, size)
            key = (message.topic, message.queue_id)
            if message.commitlog_offset == start:
                queues.setdefault(key, []).append(_Own(start, message.queue_offset))
                if start in suspects:
                    named[start] = key
            start += size
    return {place: key for place, key in named.items() if _fits(queues[key], place)}


def _fits(queue: list[_Own], place: int) -> bool:
    at = next(number for number, own in enumerate(queue) if own.place == place)
    wanted = queue[at].queue_offset
    before = queue[at - 1].queue_offset == wanted - 1 if at else None
    behind = queue[at + 1].queue_offset == wanted + 1 if at + 1 < len(queue) else None
    known = [fits for fits in (before, behind) if fits is not None]
    return bool(known) and all(known)
