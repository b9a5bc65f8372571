"""One word for the health of a group in a queue, from observations over time.

The idea is Burrow's: judge behaviour, not thresholds. The difference: the log has the age of the
oldest unread message, so a queue in which nothing happens, or in which something has just been
stored, is never called late; and one observation alone gives UNKNOWN. In this order:

  nothing unread; or the oldest unread is younger than a minute     OK
  no progress, or beyond the end: see ``judge``                     UNKNOWN, WARN
  the same offset for a minute in which something was unread        STALL with members, else STOP
  below an earlier offset within the observations                   REWIND
  got nearer to the end between two observations                    OK
  observations of less than a minute, or fewer than two steps       UNKNOWN
  else: it moves, but never got nearer to the end                   WARN
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

PATIENCE_MS: Final = 60_000
"""Consumers write their progress each 5 s: a state of a minute is significant."""
LEAST_STEPS: Final = 2
"""Movements without which a trend is not judged."""


class Health(StrEnum):
    """Health of a group; ``rank`` orders the values."""

    OK = "OK"
    """It keeps up, or has a lag that shrinks."""
    UNKNOWN = "UNKNOWN"
    """It has a lag, and it is unknown whether it moves."""
    WARN = "WARN"
    """It moves, and does not get nearer to the end."""
    REWIND = "REWIND"
    """Its progress went back and has not reached the old offset again."""
    STALL = "STALL"
    """It has members, and does not move."""
    STOP = "STOP"
    """It does not move, and has no known members."""

    @property
    def rank(self) -> int:
        """0 for OK, higher is worse."""
        return _RANKS[self]


_RANKS: Final = {word: number for number, word in enumerate(Health)}


class Observation(NamedTuple):
    """The observed state of a queue at a time (ms): offsets count messages."""

    at: int
    committed_offset: int | None
    max_offset: int

    @property
    def lag(self) -> int | None:
        """Messages to the end; None without progress or beyond the end."""
        committed = self.committed_offset
        if committed is None or committed > self.max_offset:
            return None
        return self.max_offset - committed


def judge(
    at: int,
    committed: int | None,
    end: int,
    seen_since: int,
    earlier: Callable[[], Sequence[Observation]],
    min_offset: int,
    oldest_unread_timestamp: int | None,
    *,
    members: bool,
) -> Health:
    """Judge a queue by its current state (``at`` ms, progress, end) and, if that is not enough, by
    ``earlier`` observations, in the order of time. ``seen_since``: since when (ms) all observations
    have the present offset.

    ``oldest_unread_timestamp`` is the store time (ms) of the first message that is unread and
    still there, None if there is none or it cannot be read; ``min_offset`` the queue's now.
    ``members``: whether consumers of the group are known to live. Progress beyond the end is WARN:
    messages stored up to that offset will be passed over.
    """
    if committed is None:
        return Health.OK if min_offset == end else Health.UNKNOWN
    if committed >= end:
        return Health.OK if committed == end else Health.WARN
    oldest = oldest_unread_timestamp or 0
    if at - oldest < PATIENCE_MS:
        return Health.OK
    if at - max(seen_since, oldest) >= PATIENCE_MS:
        return Health.STALL if members else Health.STOP
    before = earlier()
    if not before:
        return Health.UNKNOWN
    observations = [*before, Observation(at, committed, end)]
    if any((observation.committed_offset or 0) > committed for observation in observations):
        return Health.REWIND
    if _came_nearer(observations):
        return Health.OK
    steps = len({observation.committed_offset for observation in observations}) - 1
    if steps < LEAST_STEPS or at - observations[0].at < PATIENCE_MS:
        return Health.UNKNOWN
    return Health.WARN


def worst(words: Iterable[Health]) -> Health:
    """The worst of some; OK if there are none."""
    return max(words, key=_RANKS.__getitem__, default=Health.OK)


def _came_nearer(observations: Sequence[Observation]) -> bool:
    """Whether the lag shrank between two observations, or was ever 0."""
    lags = [observation.lag for observation in observations if observation.lag is not None]
    return 0 in lags or any(after < before for before, after in pairwise(lags))
