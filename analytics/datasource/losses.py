"""Messages that were deleted after a query had planned to read them.

Retention deletes the oldest log files at any time: also after a batch was planned, and while its
tasks read. With ``failOnDataLoss`` (the default) the query fails and says what is gone; without it
the query goes on at the next message that is still there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from analytics.lag.log_offsets import first_at
from storage.readonly import StoreView

from .errors import DataLossError

if TYPE_CHECKING:
    from .ranges import Range

logger = logging.getLogger("rmqctl.datasource")
GOES_ON: Final = "failOnDataLoss=false goes on after them"


def opened_ranges(ranges: Iterable[Range]) -> Iterator[tuple[Range, StoreView]]:
    """Ranges and views of their stores. A view serves all ranges of its store in a row, and is
    closed after the last one of them."""
    view: StoreView | None = None
    path = ""
    try:
        for part in ranges:
            if view is None or part.path != path:
                if view is not None:
                    view.close()
                view, path = StoreView.open(part.path), part.path
            yield part, view
    finally:
        if view is not None:
            view.close()


def first_left(view: StoreView, part: Range, at: int, *, fail: bool) -> int:
    """The first message of a range, from ``at`` on, that has not been deleted since it was planned;
    ``part.end`` without any. Raises DataLossError with ``fail`` if that is not ``at``."""
    low = min(view.min_offset_in_queue(part.topic, part.queue_id), part.end)
    if low > at:
        _lost(part, at, low, fail=fail)
        return low
    return at


def next_after_deleted(
    view: StoreView, part: Range, at: int, place: int | None, *, fail: bool
) -> int | None:
    """Where to go on after a message that cannot be read; None if it is damaged, not deleted.

    ``place`` is the log offset of its record, None if its unit cannot be read. Raises DataLossError
    with ``fail``.
    """
    low = first_left(view, part, at, fail=fail)
    if low > at:
        return low
    if place is None:
        return None
    size = view.config.mapped_file_size_commit_log
    files = view.files.log.relist()
    start = place - place % size
    if start in files:
        return None
    later = next((one for one in files if one > start), start + size)
    found = max(at + 1, first_at(view, part.topic, part.queue_id, later, at, part.end))
    _lost(part, at, found, fail=fail)
    return found


def _lost(part: Range, at: int, end: int, *, fail: bool) -> None:
    which = f"message {at}" if end == at + 1 else f"messages {at} to {end - 1}"
    were = "was" if end == at + 1 else "were"
    text = (
        f"{part.path}: {which} of {part.topic}, queue {part.queue_id}, {were} deleted after this "
        "query was planned, before they were read"
    )
    if fail:
        raise DataLossError(f"{text}; {GOES_ON}")
    logger.warning("%s: left out", text)
