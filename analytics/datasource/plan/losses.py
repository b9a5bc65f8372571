"""Messages that were deleted after a query had planned to read them.

Retention deletes the oldest log files at any time: also after a batch was planned, and while its
tasks read. With ``failOnDataLoss`` (the default) the query fails and says what is gone; without it
the query goes on at the next message that is still there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol

from analytics.datasource.query.errors import DataLossError
from storage.format.names import COMMITLOG, file_name
from storage.read.log_offsets import first_at, place_from

from .named_queues import view_of
from .planned import PLANNED, planned_view

if TYPE_CHECKING:
    from storage.readonly import StoreView

    from .ranges import Range

logger = logging.getLogger("rmqctl.datasource")
GOES_ON: Final = "failOnDataLoss=false goes on after them"


class Planned(Protocol):
    """What was planned for a task, of one store: a range of a queue, or a part of the log."""

    @property
    def broker(self) -> str:
        """The name of the store's broker."""

    @property
    def path(self) -> str:
        """The store's folder."""

    @property
    def topic(self) -> str:
        """The topic; where there are more, a name that is no shorter than most."""

    @property
    def named(self) -> Range | None:
        """The range, if records of the log have named it, and no look at its queue."""

    def ranges(self, view: StoreView) -> Iterable[Range]:
        """The ranges of queues, as the store has them now."""


def opened_ranges(planned: Iterable[Planned]) -> Iterator[tuple[Range, StoreView]]:
    """Ranges and views of their stores. A view serves all ranges of its store in a row, and is
    closed after the last one of them."""
    for path, of_store in groupby(planned, lambda part: part.path):
        parts = list(of_store)
        with planned_view(path) or view_of(path, parts) as view:
            for part in parts:
                for found in part.ranges(view):
                    yield found, view


def check_log(view: StoreView, path: str, begin: int, end: int, *, fail: bool) -> None:
    """Check that a part of the log that a task was planned to read is there.

    Raises DataLossError with ``fail`` if some of it was deleted or cut since then.
    """
    low = min(view.log_min_offset(), end)
    high = max(view.log_max_offset(), view.bounds.finished_to())
    gone = []
    if low > begin:
        gone.append(
            f"{low - begin} bytes of the log from {begin} on were deleted after this query was "
            "planned, before they were read"
        )
    if high < end:
        gone.append(
            f"the log ends at byte {high}, and this query was planned to read it up to byte {end}: "
            "it was cut since then, or this machine does not see all of it yet"
        )
    for text in gone:
        if fail:
            raise DataLossError(f"{path}: {text}; failOnDataLoss=false reads what is left")
        logger.warning("%s: %s: left out", path, text)


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

    ``place`` is the log offset of its record, None if its unit cannot be read or names none. Raises
    DataLossError with ``fail``.
    """
    low = first_left(view, part, at, fail=fail)
    if low > at:
        return low
    if place is None:
        return None
    size = view.config.mapped_file_size_commit_log
    files = view.files.log.relist()
    start = place - place % size
    if start in files or (files and place >= max(files) + size):  # no file was there
        return None
    if not _may_be_deleted(view, part, at, place):
        return None
    later = next((one for one in files if one > start), start + size)
    found = max(at + 1, first_at(view, part.topic, part.queue_id, later, at, part.end))
    _lost(part, at, found, fail=fail)
    return found


def _may_be_deleted(view: StoreView, part: Range, at: int, place: int) -> bool:
    """Whether a record whose file of the log is missing was deleted; else its unit is damaged.

    Places ascend in a queue, and the folder of an object store's task has some files of the log.
    """
    planned = PLANNED.get(part.path)
    if planned is not None:
        size = planned.config.mapped_file_size_commit_log
        return f"{COMMITLOG}/{file_name(place - place % size)}" in planned.removed
    low = view.min_offset_in_queue(part.topic, part.queue_id)
    _, earlier = place_from(view, part.topic, part.queue_id, low, at)
    return earlier is None or earlier <= place


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
