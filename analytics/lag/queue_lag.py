"""The lag of a group in a queue, as an object, and as columns for all queues of a topic.

A look may see tens of thousands of queues, and sums need no object for each of them. What asks for
a queue gets one, made then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, overload

from .health import Health
from .queue_position import QueuePosition

_new: Final = tuple.__new__


class QueueLag(NamedTuple):
    """The lag of a group in one queue. Times are ms, rates messages a second."""

    queue_id: int
    unread: QueuePosition
    lag_bytes: int | None
    oldest_unread_timestamp: int | None
    rate_in: float | None
    rate_out: float | None
    status: Health
    risk_timestamp: int | None
    """From when on the oldest unread message may be deleted; None if that is unknown."""

    @property
    def drain_ms(self) -> int | None:
        """See :func:`drain_ms`."""
        return drain_ms(self.unread.lag, self.rate_in, self.rate_out)


class Columns(NamedTuple):
    """Members of :class:`QueueLag` and of its position, each for all queues in order."""

    ids: Sequence[int]
    lows: Sequence[int]
    committed: Sequence[int | None]
    highs: Sequence[int]
    lag_bytes: Sequence[int | None]
    stored: Sequence[int | None]
    rates_in: Sequence[float | None]
    rates_out: Sequence[float | None]
    statuses: Sequence[Health]
    risks: Sequence[int | None]


class QueueColumns(Sequence[QueueLag]):
    """A sequence of QueueLag over columns. Equal to any sequence of the same ones."""

    __slots__ = ("columns",)

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns.ids)

    def __iter__(self) -> Iterator[QueueLag]:
        return map(_queue_lag, *self.columns)

    @overload
    def __getitem__(self, number: int) -> QueueLag: ...
    @overload
    def __getitem__(self, number: slice) -> list[QueueLag]: ...
    def __getitem__(self, number: int | slice) -> QueueLag | list[QueueLag]:
        if isinstance(number, slice):
            return list(self)[number]
        return next(map(_queue_lag, *([column[number]] for column in self.columns)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def _queue_lag(
    queue_id: int,
    low: int,
    committed: int | None,
    high: int,
    lag_bytes: int | None,
    stored: int | None,
    rate_in: float | None,
    rate_out: float | None,
    status: Health,
    risk: int | None,
) -> QueueLag:
    what = _new(QueuePosition, (low, committed, high))
    return _new(QueueLag, (queue_id, what, lag_bytes, stored, rate_in, rate_out, status, risk))


def drain_ms(lag: int | None, rate_in: float | None, rate_out: float | None) -> int | None:
    """Estimate how long it takes, at these rates, until nothing is unread: 0 if nothing is.

    None if that is unknown, or never: no more goes out than comes in.
    """
    if not lag:
        return lag
    if rate_in is None or rate_out is None or rate_out <= rate_in:
        return None
    return round(lag / (rate_out - rate_in) * 1000)
