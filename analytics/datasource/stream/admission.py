"""What a stream has not read yet, and how much of it one batch takes.

What is counted costs what is counted: a small rest of a log is read record by record. Of a large
one the queues know how many messages there are, if they are few. If they are many, too, a batch
takes its share by the bytes of the logs, and reads records until it has its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from analytics.datasource.plan import log_part
from analytics.datasource.plan.log_now import LogNow
from analytics.datasource.plan.log_part import LogPart, next_record, read_part
from analytics.datasource.plan.stretches import are_few
from analytics.datasource.query.selection import EVERYTHING
from analytics.datasource.query.topics import TopicChoice

from .backlog import backlog_of, shares
from .positions import Position


class Rest(NamedTuple):
    """What a stream has not read of a log: all from ``first`` on."""

    log: LogNow
    position: Position
    first: int

    @property
    def begin(self) -> int:
        """The first byte from ``first`` on whose log file exists."""
        with self.log.opened() as files:
            size = files.files.file_size
            starts = files.files.relist()
        return min(
            (max(self.first, start) for start in starts if self.first < start + size),
            default=self.first,
        )

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return max(0, self.log.end - self.first)


class Unread(NamedTuple):
    """How many messages there are, and the store time (ms) of the oldest one; None: not known."""

    messages: int | None
    oldest_timestamp: int | None = None


def unread(rests: Sequence[Rest], topics: TopicChoice) -> list[Unread]:
    """What the selected queues hold of each rest."""
    parts = _read_if_small(rests, topics)
    large = [
        rest.log for rest, part in zip(rests, parts, strict=True) if rest.size and part is None
    ]
    few = are_few(large, topics, EVERYTHING)
    found: list[Unread] = []
    for rest, part in zip(rests, parts, strict=True):
        if not rest.size:
            found.append(Unread(0))
        elif part is not None:
            found.append(Unread(part.messages, part.oldest_timestamp))
        elif few:
            backlog = backlog_of(*rest, topics)
            found.append(Unread(backlog.messages, backlog.oldest_timestamp()))
        else:
            found.append(Unread(None))
    return found


def are_fewer(rests: Sequence[Rest], topics: TopicChoice, least: int) -> bool:
    """Whether there are fewer messages than that; those that are not counted are enough."""
    counts = [one.messages for one in unread(rests, topics)]
    return all(count is not None for count in counts) and sum(filter(None, counts)) < least


def ends_by_bytes(rests: Sequence[Rest], most: int) -> list[int]:
    """The ends of a batch of about so many bytes, of all rests in proportion. It takes at least a
    record of each one, and ends where a record begins."""
    begins = [rest.begin if rest.size else rest.first for rest in rests]
    sizes = [max(0, rest.log.end - begin) for rest, begin in zip(rests, begins, strict=True)]
    ends = []
    for rest, begin, size, part in zip(rests, begins, sizes, shares(sizes, most), strict=True):
        if part >= size:
            ends.append(max(rest.first, rest.log.end))
        else:
            place = begin + max(1, part)
            file_size = rest.log.config.mapped_file_size_commit_log
            ends.append(next_record(rest.log, max(begin, place - place % file_size), place))
    return ends


def ends_by_messages(rests: Sequence[Rest], topics: TopicChoice, most: int) -> list[int]:
    """The ends of a batch of at most so many messages, of all rests in proportion."""
    parts = _read_if_small(rests, topics)
    small = [part.messages if part is not None else 0 for part in parts]
    if all(part is not None or not rest.size for rest, part in zip(rests, parts, strict=True)):
        return [
            _end(rest, topics, part, count)
            for rest, part, count in zip(rests, shares(small, most), small, strict=True)
        ]
    if are_few([rest.log for rest in rests if rest.size], topics, EVERYTHING):
        backlogs = [backlog_of(*rest, topics) for rest in rests]
        found = shares([one.messages for one in backlogs], most)
        return [one.end_of(part) for one, part in zip(backlogs, found, strict=True)]
    return _ends_by_reading(rests, topics, most)


def _end(rest: Rest, topics: TopicChoice, part: int, count: int) -> int:
    """The end of the first ``part`` messages of a small rest, which has ``count``."""
    if part >= count:
        return max(rest.first, rest.log.end)
    if not part:
        return rest.first
    found = read_part(rest.log, rest.begin, rest.log.end, topics, part)
    return rest.first if found is None else found.end


def _ends_by_reading(rests: Sequence[Rest], topics: TopicChoice, most: int) -> list[int]:
    """By the bytes of the logs; what a rest lacks goes to the others."""
    ends = [rest.first for rest in rests]
    left = most
    for wanted in (shares([rest.size for rest in rests], most), [most] * len(rests)):
        for number, (rest, part) in enumerate(zip(rests, wanted, strict=True)):
            room = min(part, left)
            if room and ends[number] < rest.log.end:
                now = rest._replace(first=ends[number])
                found = read_part(rest.log, now.begin, rest.log.end, topics, room)
                if found is None:  # the queues are looked at
                    backlog = backlog_of(*now, topics)
                    end, count = backlog.end_of(room), min(room, backlog.messages)
                else:
                    end, count = found.end, found.messages
                if count <= room or left == most:  # else a record in light queues is too many
                    ends[number] = end
                    left = max(0, left - count)
    return ends


def _read_if_small(rests: Sequence[Rest], topics: TopicChoice) -> list[LogPart | None]:
    """The rests, record by record, if they are small together; None for those that are not."""
    total = sum(rest.size for rest in rests)
    return [
        read_part(rest.log, rest.begin, rest.log.end, topics)
        if rest.size and not rest.position.floors and total <= log_part.MOST_BYTES
        else None
        for rest in rests
    ]
