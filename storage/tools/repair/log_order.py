"""Deciding between a record and a unit that contradict each other, by the log's order.

Records of one queue lie in the log in the order of their queue offsets. A record that fits between
its neighbours is right, and the unit is wrong; else its head is damaged. Neighbours may lie in
other files, so a record is not right either if the place that it names has a unit of a whole record
that names it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from storage.format.check import CheckKind, check_record
from storage.format.dispatch import is_possible_topic
from storage.format.record import decode_record
from storage.log.walk import LogWalk, StretchKind
from storage.tools.fsck.units import units_at

if TYPE_CHECKING:
    from storage.files.read_files import StoreFiles


class _Own(NamedTuple):
    place: int
    queue_offset: int


def fitting_records(
    files: StoreFiles, first: int, end: int, suspects: set[int]
) -> dict[int, tuple[str, int]]:
    """Which of the records at ``suspects`` fit into their queue's order, with the queue they name.

    Reads the whole records of the file that begins at ``first``, up to ``end``.
    """
    log = files.log
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
    return {
        place: key
        for place, key in named.items()
        if _fits(queues[key], place) and not _is_taken(files, key, queues[key], place)
    }


def _at(queue: list[_Own], place: int) -> int:
    return next(number for number, own in enumerate(queue) if own.place == place)


def _fits(queue: list[_Own], place: int) -> bool:
    at = _at(queue, place)
    wanted = queue[at].queue_offset
    before = queue[at - 1].queue_offset == wanted - 1 if at else None
    end = queue[at + 1].queue_offset == wanted + 1 if at + 1 < len(queue) else None
    known = [fits for fits in (before, end) if fits is not None]
    return bool(known) and all(known)


def _is_taken(files: StoreFiles, key: tuple[str, int], queue: list[_Own], place: int) -> bool:
    """Whether the unit in the place that a record names is that of another one, which agrees."""
    topic, queue_id = key
    wanted = queue[_at(queue, place)].queue_offset
    if queue_id < 0 or not is_possible_topic(topic):
        return False
    (unit,) = units_at(files.queue(topic, queue_id), np.array([wanted])).tolist()
    offset, size, _ = unit
    if offset < 0 or size <= 0 or offset == place:
        return False
    position = offset % files.log.file_size
    file = files.log.at(offset - position)
    if file is None or position + size > file.length:
        return False
    found = check_record(file.view, position, file.length, check_crc=False)
    if found.kind is not CheckKind.MESSAGE or found.size != size:
        return False
    other = decode_record(file.view, position, size)
    named = (other.topic, other.queue_id, other.queue_offset, other.commitlog_offset)
    return named == (topic, queue_id, wanted, offset)
