"""The lag of groups in the last hour: from the samples of the store, then from the console's looks.

Nothing is written. Each group and topic has one number for each half minute; those of a half minute
in which nothing was looked at are NO_LOOK, and unknown ones are None when they are read.
"""

from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from storage.configs.consumer_offsets import topic_at_group

if TYPE_CHECKING:
    from storage.configs.offset_samples import Change, SampleHistory

STEP_MS: Final = 30_000
NO_LOOK: Final = -1
"""A time at which nothing was looked at, in a series of lags."""
SLOTS: Final = 120
_UNKNOWN: Final = -2
_EMPTY: Final = array("q", [NO_LOOK] * SLOTS)

Key = tuple[str, str]
"""Group and topic."""


class LagHistory:
    """A ring of numbers for each group and topic; it does not grow with the number of looks."""

    def __init__(self) -> None:
        self._rings: dict[Key, array[int]] = {}
        self._last: dict[Key, int] = {}
        """The newest half minute of each ring."""

    def __contains__(self, key: Key) -> bool:
        """Whether a group and topic was looked at."""
        return key in self._rings

    def add(self, at_ms: int, lags: Iterable[tuple[Key, int | None]]) -> None:
        """Keep the lags of a look; the last one of a half minute counts."""
        slot = at_ms // STEP_MS
        for key, lag in lags:
            self._put(key, slot, _UNKNOWN if lag is None else lag)

    def _put(self, key: Key, slot: int, value: int) -> None:
        ring = self._rings.get(key)
        if ring is None:
            ring = self._rings[key] = _EMPTY[:]
            self._last[key] = slot
        last = self._last[key]
        if slot > last:
            for passed in range(max(last + 1, slot - SLOTS + 1), slot):
                ring[passed % SLOTS] = NO_LOOK
            self._last[key] = slot
        elif slot <= last - SLOTS:
            return
        ring[slot % SLOTS] = value

    def lags(self, key: Key, now_ms: int) -> list[int | None]:
        """The numbers of the last hour, oldest first."""
        ring, now = self._rings.get(key), now_ms // STEP_MS
        if ring is None:
            return [NO_LOOK] * SLOTS
        last = self._last[key]
        end = (last + 1) % SLOTS
        values = [*ring[end:], *ring[:end]]  # up to the newest half minute
        if now >= last:
            values = [*values[now - last :], *[NO_LOOK] * min(now - last, SLOTS)]
        else:
            values = [*[NO_LOOK] * min(last - now, SLOTS), *values[: now - last]]
        if _UNKNOWN not in values:
            return list[int | None](values)
        return [None if value == _UNKNOWN else value for value in values]

    def begin(self, keys: Iterable[Key], samples: "SampleHistory", now_ms: int) -> None:
        """Take in the samples that the store has."""
        first = now_ms // STEP_MS - SLOTS + 1
        watched = [
            any(
                time.begin < (first + n + 1) * STEP_MS and time.end >= (first + n) * STEP_MS
                for time in samples.watched
            )
            for n in range(SLOTS)
        ]
        if not any(watched):
            return
        for group, topic in keys:
            queues = samples.queues_of(topic_at_group(topic, group))
            if queues:
                ends = {queue: samples.ends(topic, queue) for queue in queues}
                for n, lag in enumerate(_sums(queues, ends, first)):
                    if watched[n] and lag is not None:
                        self._put((group, topic), first + n, lag)


def _sums(
    queues: "Mapping[int, list[Change]]", ends: "Mapping[int, list[Change]]", first: int
) -> list[int | None]:
    """The lag of all queues together at the end of each half minute; None before the first
    sample."""
    changes, begun = [0] * SLOTS, SLOTS
    for queue, committed in queues.items():
        offset = end = None
        before = 0
        for at, is_end, value in sorted(
            [
                *((at, False, value) for at, value in committed),
                *((at, True, value) for at, value in ends[queue]),
            ],
            key=lambda change: change[:2],
        ):
            if is_end:
                end = value
            else:
                offset = value
            slot = at // STEP_MS - first
            if slot >= SLOTS:
                break
            lag = 0 if offset is None or end is None else max(0, end - offset)
            if offset is not None and end is not None:
                begun = min(begun, max(0, slot))
            changes[max(0, slot)] += lag - before
            before = lag
    found: list[int | None] = []
    total = 0
    for n, change in enumerate(changes):
        total += change
        found.append(total if n >= begun else None)
    return found


def added(rows: Iterable[list[int | None]]) -> list[int | None]:
    """The sum of what is known of several series: None where nothing is, NO_LOOK where nothing was
    looked at."""
    found: list[int | None] = []
    for values in zip(*rows, strict=True):
        if values.count(NO_LOOK) == len(values):  # most often
            found.append(NO_LOOK)
        else:
            looked = [value for value in values if value != NO_LOOK]
            known = [value for value in looked if value is not None]
            found.append(sum(known) if known else None)
    return found
