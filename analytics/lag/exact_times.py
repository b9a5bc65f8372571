"""The store time of each unread message, and which messages cannot be read.

A search by time costs little for any number of messages, but it relies on the order of times, and
reads few of the records: it does not find unreadable ones, nor a clock that went back. So each
record's time is read where there are not too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from .queue_position import QueuePosition

if TYPE_CHECKING:
    from storage.readonly import StoreView

EACH_TIME_UP_TO: Final = 200_000
"""Messages up to which each one's time is read: with NumPy that takes some 10 ms."""
_WORTH_NUMPY: Final = 20_000
"""Messages from which importing NumPy (0.1 s) is quicker than working without it."""


class Part(NamedTuple):
    """The unread part of one queue."""

    topic: str
    queue_id: int
    unread: QueuePosition

    @property
    def messages(self) -> int:
        """Unread messages that are still there."""
        first = self.unread.first_unread
        return 0 if first is None else self.unread.max_offset - first


def stored_times(view: StoreView, parts: Iterable[Part]) -> list[tuple[int, int]]:
    """Store time (ms) and size of each unread message, by time; unreadable ones are left out."""
    found: list[tuple[int, int]] = []
    parts = [part for part in parts if part.messages]
    read = _many if sum(part.messages for part in parts) >= _WORTH_NUMPY else _few
    for part in parts:
        found += read(view, part)
    found.sort()
    return found


def _few(view: StoreView, part: Part) -> Sequence[tuple[int, int]]:
    topic, queue_id, what = part
    found = []
    for offset in range(what.first_unread or 0, what.max_offset):
        time = view.store_timestamp(topic, queue_id, offset)
        unit = view.unit(topic, queue_id, offset)
        if time is not None and unit is not None:
            found.append((time, unit[1]))
    return found


def _many(view: StoreView, part: Part) -> Sequence[tuple[int, int]]:
    from analytics.kernels.units import read_units

    topic, queue_id, what = part
    units = read_units(view, topic, queue_id, what.first_unread or 0, what.max_offset)
    times = view.store_timestamps(units.places, units.sizes)
    known = times >= 0
    return list(zip(times[known].tolist(), units.sizes[known].tolist(), strict=True))
