"""Where a queue goes on after units that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.results import GetMessageStatus

if TYPE_CHECKING:
    from storage.readonly import StoreView


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
