"""Reading a queue on after units that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.results import GetMessageStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.readonly import StoreView


def unit_runs(
    view: StoreView, topic: str, queue_id: int, at: int, end: int, most: int
) -> Iterator[tuple[int, bytes]]:
    """The units of [at, end), in runs of at most ``most``: the queue offset of the first one, and
    the stored bytes of all of them. Missing units are in no run.
    """
    while at < end:
        units = view.unit_bytes(topic, queue_id, at, min(most, end - at))
        if units:
            yield at, units
            at += len(units) // CQ_STORE_UNIT_SIZE
        else:
            at = after_gap(view, topic, queue_id, at, end)


def after_gap(view: StoreView, topic: str, queue_id: int, offset: int, end: int) -> int:
    """The next queue offset at which there may be a unit, if ``offset`` has none; at most ``end``.

    As a pull does: the queue's first message of now, the next file or the next rebuilt unit. It
    lies after ``offset``; ``end`` where the queue ends before.
    """
    found = view.get_message(topic, queue_id, offset, 1)
    if offset >= found.max_offset:
        return end
    following = offset + 1
    if found.status in (GetMessageStatus.OFFSET_FOUND_NULL, GetMessageStatus.OFFSET_TOO_SMALL):
        following = max(following, found.next_begin_offset)
    return min(following, end)
