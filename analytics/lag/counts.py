"""The lag of groups as it is kept between two looks: with counts of messages instead of rates.

A rate changes with each moment: the same messages in a longer time. The count does not, so what is
made of it holds until a message is stored or read, or leaves the five minutes. Rates are made of
the counts when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from .lag_snapshot import GroupLag
from .totals import QueueLag

Read = tuple[int | None, int]
"""Messages that were read in the known part of the five minutes, and since when (ms) the progress
is as it is."""


class GroupCounts(NamedTuple):
    """A group in a topic; see :class:`.lag_snapshot.GroupLag`. The rates of its queues are None."""

    group: str
    topic: str
    queue_ids: tuple[int, ...]
    queues: Sequence[QueueLag]
    read: Sequence[Read]
    """Of each queue."""
    retry: int | None
    dlq: int
    members: int


class Rates(NamedTuple):
    """What makes rates of counts, at one moment."""

    start: int
    """The beginning of the five minutes (ms)."""
    span_s: float | None
    """The length of their known part; see :class:`.trend.Trend`."""
    rate_in: Mapping[str, Mapping[int, float | None]]
    """By topic and queue id."""

    def rate_out(self, read: Read) -> float | None:
        """As :meth:`.trend.Trend.rate_out` gives it."""
        count, since = read
        if self.span_s is not None and count is not None:
            return count / self.span_s
        return 0.0 if count == 0 and since <= self.start else None


_Made = tuple[GroupCounts, tuple[float | None, ...], GroupLag]


class CountedLags(Sequence[GroupLag]):
    """The groups of one look; a GroupLag is made when it is asked for.

    ``made`` are those of earlier looks: one that is equal is the same object.
    """

    def __init__(
        self,
        keys: Sequence[tuple[str, str]],
        counts: Sequence[GroupCounts],
        rates: Rates,
        made: dict[tuple[str, str], _Made],
    ) -> None:
        self.keys = keys
        """Group and topic of each; the same object as long as they are the same."""
        self.counts = counts
        self.rates = rates
        self._made = made

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, number: int) -> GroupLag: ...
    @overload
    def __getitem__(self, number: slice) -> list[GroupLag]: ...
    def __getitem__(self, number: int | slice) -> GroupLag | list[GroupLag]:
        if isinstance(number, slice):
            return [self._rated(one) for one in self.counts[number]]
        return self._rated(self.counts[number])

    def __iter__(self) -> Iterator[GroupLag]:
        return map(self._rated, self.counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def chosen(self, takes: Callable[[str, str], bool]) -> list[GroupLag]:
        """Those whose group and topic are taken; no other one is made."""
        return [self._rated(one) for one in self.counts if takes(one.group, one.topic)]

    def _rated(self, one: GroupCounts) -> GroupLag:
        known = self._made.get(one[:2])
        rates_in = self.rates.rate_in[one.topic]
        rates = (
            *map(rates_in.__getitem__, one.queue_ids),
            *map(self.rates.rate_out, one.read),
        )
        if known is not None and known[0] is one and known[1] == rates:
            return known[2]
        count = len(one.queues)
        queues = [
            QueueLag(*queue[:4], rate_in, rate_out, *queue[6:])
            for queue, rate_in, rate_out in zip(
                one.queues, rates[:count], rates[count:], strict=True
            )
        ]
        found = GroupLag(one.group, one.topic, queues, one.retry, one.dlq, one.members)
        self._made[one[:2]] = one, rates, found
        return found


def counts_of(group_lags: Sequence[GroupLag]) -> Sequence[GroupLag | GroupCounts]:
    """The groups without making their rates, where they are kept as counts."""
    return group_lags.counts if isinstance(group_lags, CountedLags) else group_lags


def chosen_of(
    group_lags: Sequence[GroupLag], takes: Callable[[str, str], bool]
) -> Sequence[GroupLag]:
    """Those whose group and topic are taken."""
    if isinstance(group_lags, CountedLags):
        return group_lags.chosen(takes)
    return [one for one in group_lags if takes(one.group, one.topic)]
