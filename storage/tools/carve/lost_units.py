"""Messages at the end of queues whose last file was cut short or is gone, found in the log.

Readers take the end of such a queue's units as its end. A tool that copies its messages must report
what is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from storage.configs.deleted_topics import deleted_topics_for_reading
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.sys_flag import MessageSysFlag
from storage.log.walk import LogWalk, StretchKind
from storage.queue.written_end import written_units
from storage.record_batch.queue_numbers import TopicNames
from storage.record_batch.record_batch import read_block

if TYPE_CHECKING:
    from storage.readonly import StoreView

QueueKey = tuple[str, int]

_FARTHEST: Final = 1 << 20
"""Queue offsets between two records of one queue; a larger distance is a damaged number."""


class LostUnits(NamedTuple):
    """A message past its queue's end."""

    queue_offset: int
    store_timestamp: int
    """In ms."""


def unreached(
    view: StoreView, queues: Iterable[QueueKey], log_end: int
) -> dict[QueueKey, list[LostUnits]]:
    """Give the log's messages past the ends of those queues that may have been cut short, in order.

    Only those before ``log_end``, which was the log's end before this call: messages that others
    store meanwhile are not lost. Reads the log only if there is such a queue, from its last message
    on. Raises OSError.
    """
    ends = {key: end for key in queues if (end := _cut_end(view, *key)) is not None}
    found: dict[QueueKey, list[LostUnits]] = {key: [] for key in ends}
    if not ends:
        return found
    log, topics = view.files.apart().log, TopicNames()
    deleted = deleted_topics_for_reading(view.root)
    start = min(_end_of_last(view, key, end) for key, end in ends.items())
    walk = LogWalk(log, start, limit=log_end, check_crc=False, search_all=True)
    while (stretch := walk.next()) is not None:
        position = stretch.start % log.file_size
        file = log.at(stretch.start - position)
        if stretch.kind is not StretchKind.RECORDS or file is None:
            continue
        block = read_block(file.view, stretch.start - position, position, stretch.sizes, topics)
        plain = block.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE == 0
        plain &= block.physical_offset == block.offset
        for key, end in ends.items():
            if key[0] not in topics.names:
                continue
            mine = plain & (block.topic == topics.names.index(key[0])) & (block.queue_id == key[1])
            mine &= (block.queue_offset >= end) & (block.offset >= deleted.get(key[0], 0))
            for row in np.flatnonzero(mine).tolist():
                at, time = int(block.queue_offset[row]), int(block.store_timestamp[row])
                found[key].append(LostUnits(at, time))
    return {key: _in_order(messages, ends[key]) for key, messages in found.items()}


def _cut_end(view: StoreView, topic: str, queue_id: int) -> int | None:
    """End of a queue's units if its last file is too short or may be gone; None for others.

    After a file that is full to its end another one may have existed, or not yet.
    """
    row = view.files.queue(topic, queue_id)
    if row is None:
        return None
    files, end = row.relist(), written_units(row)
    if files and Path(row.path(files[-1])).stat().st_size >= row.file_size:
        is_full = end * CQ_STORE_UNIT_SIZE >= files[-1] + row.file_size
        return end if is_full else None
    return end


def _end_of_last(view: StoreView, key: QueueKey, end: int) -> int:
    """The log offset after the last reachable message of a queue."""
    unit = view.unit(*key, end - 1) if end else None
    position = 0 if unit is None else unit[0] + unit[1]
    return max(position, view.log_min_offset())


def _in_order(messages: list[LostUnits], end: int) -> list[LostUnits]:
    ordered = sorted(set(messages))
    for number, message in enumerate(ordered):
        if message.queue_offset > end + _FARTHEST:
            return ordered[:number]
        end = message.queue_offset
    return ordered
