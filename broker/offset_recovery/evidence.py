"""Observed offsets of a group, and what they imply about its last progress.

Progress only grows, unless it is moved. So each offset that was ever committed is a lower bound of
the last one, if it was not moved back since. Known moves are in the journal, and in samples that
show less than the ones before them; so

* what was written before the last move does not count,
* what has no date (a ``.bak``) counts if it is more than the queue ever had before that move, and
  so must have been written later.

A move that was noted last may not have been done, if nothing confirms it: then the lesser one of
both values is the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

SAMPLED_LATE_MS: Final = 30_000
"""A sample that was read before a change may be noted after it."""


class Source(StrEnum):
    """What an offset was recovered from."""

    FILE = "file"
    """What is whole of config/consumerOffset.json."""
    OFFSETS = "offsets"
    """What is whole of rmqctl/offsets.log."""
    BAK = "bak"
    """config/consumerOffset.json.bak: what the file held before its last change."""
    NOTE = "note"
    """What a consumer published for other processes, in rmqctl/members."""
    JOURNAL = "journal"
    """The value that a change in the journal set."""
    SAMPLE = "sample"
    """Its value in a sample, in rmqctl/samples."""
    RETRY = "retry"
    """Messages that the group has given back: retries and dead letters."""
    TRACE = "trace"
    """Messages that the group has consumed, according to its clients' traces."""


class Bound(StrEnum):
    """What is known of the progress that was lost."""

    AT_LEAST = "AT_LEAST"
    """It was this offset or a larger one."""
    EXACTLY_AT = "EXACTLY_AT"
    """It was this offset at the time that the row names, and perhaps grew since."""
    HANDED = "HANDED"
    """The group received the message before it. No bound: earlier ones may have been in work."""


class Evidence(NamedTuple):
    """An offset that a group had in a queue. ``at`` in ms; None if that is not known."""

    offset: int
    source: Source
    evidence: str
    bound: Bound
    at: int | None = None
    generation: int | None = None
    """Of a note: which move it comes after."""


class EvidenceChange(NamedTuple):
    """A time when progress was moved: by a change, or shown by samples. None is no progress."""

    at: int
    old: int | None
    new: int | None
    certain: bool = True
    """False if it was noted, but perhaps not done."""
    generation: int | None = None
    change_id: int | None = None

    @property
    def floor(self) -> int | None:
        """The bound after it."""
        if self.certain or self.new is None:
            return self.new
        return None if self.old is None else min(self.old, self.new)


def last_turn(turns: Iterable[EvidenceChange]) -> EvidenceChange | None:
    """The change that holds."""
    return max(turns, key=lambda turn: turn.at, default=None)


def best_sight(sights: Iterable[Evidence], turns: Sequence[EvidenceChange]) -> Evidence | None:
    """The largest offset that the progress cannot have been below, with its evidence."""
    last = last_turn(turns)
    valid = [sight for sight in sights if last is None or _counts(sight, last, turns)]
    if last is not None and last.change_id is not None and last.floor is not None:
        what = f"change {last.change_id}"
        bound = Bound.EXACTLY_AT if last.certain else Bound.AT_LEAST
        valid.append(Evidence(last.floor, Source.JOURNAL, what, bound, last.at))
    return max(valid, key=lambda sight: (sight.offset, sight.bound, sight.at or 0), default=None)


def _counts(sight: Evidence, last: EvidenceChange, turns: Sequence[EvidenceChange]) -> bool:
    """Whether evidence is from after the last move."""
    match sight.source:
        case Source.FILE:  # each move writes it
            return True
        case Source.NOTE if sight.generation is not None and last.generation is not None:
            return last.certain and sight.generation >= last.generation
        case Source.SAMPLE if sight.at is not None:
            late = SAMPLED_LATE_MS if last.change_id is not None else -1
            return sight.at > last.at + late
    if last.floor is not None and sight.offset <= last.floor:
        return True
    before = [turn.old for turn in turns if turn.old is not None]
    after = [turn.new for turn in turns if turn.new is not None and turn is not last]
    return last.certain and sight.offset > max([*before, *after, -1])
