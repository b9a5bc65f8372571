"""The marks of dead letters in the change journal of a store, in the order of their making."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .dlq_acks import Change
from .journal import ACK, AT_TIMESTAMP, REDRIVE, SETTLE, Journal, is_topic_deletion


class TimedMark(NamedTuple):
    """A range that was marked, or whose mark was removed, and when."""

    at: int
    """Epoch ms."""
    topic: str
    queue_id: int
    change: Change
    run: str | None = None
    """The killed redrive for which the mark was set late; None: a user's."""


class TimedDeletion(NamedTuple):
    """A topic that was deleted, and when: earlier marks are void, as its queues begin anew."""

    at: int
    """Epoch ms."""
    topic: str


class TimedRedrive(NamedTuple):
    """A run that began or went on to redrive dead letters, and when."""

    at: int
    """Epoch ms."""
    run: str


Journalled = TimedMark | TimedDeletion | TimedRedrive


def journalled_marks(journal: Journal) -> Iterator[Journalled]:
    """Give what the journal has of marks: those of users, and those that were set late for a killed
    redrive; each redrive; and each deletion of a topic. Raises as ``Journal.entries``.

    No time is before that of an earlier entry: a clock that was set back changes no order.
    """
    at = 0
    for entry in journal.entries():
        what, run = entry.get("what"), _run_of(entry)
        is_deletion = is_topic_deletion(entry)
        is_of_marks = what in (ACK, SETTLE) and entry.get("topic") is not None
        is_redrive = what == REDRIVE and run is not None
        if not is_deletion and not is_of_marks and not is_redrive:
            continue
        at = max(at, entry[AT_TIMESTAMP])
        if is_deletion:
            yield TimedDeletion(at, entry["topic"])
            continue
        if what == REDRIVE:
            yield TimedRedrive(at, str(run))
            continue
        for value, handled in ((entry["new"], True), (entry.get("old"), False)):
            if value is not None:
                for queue_id, ranges in value["handled"].items():
                    for low, high in ranges:
                        change = (handled, low, high)
                        yield TimedMark(at, entry["topic"], int(queue_id), change, run)


def marks_before_sends(
    marks: Sequence[Journalled],
    topic: str,
    run: str,
    sent: Mapping[tuple[int, int], int],
    handled: Collection[tuple[int, int]],
) -> dict[tuple[int, int], int]:
    """Give for each dead letter that a run sent how many of ``marks`` were made before.

    ``sent`` has their store times, by queue id and offset; ``handled`` are those that were marked
    when the run began. Store times are of another clock than those of the journal, so the journal's
    order counts: what comes before the run's first entry was before the send, and the first removal
    after it was not, as the mark of the run itself was removed. Times are compared only where the
    mark may have been another one, and where the journal has no entry of the run.
    """
    begun = next(
        (n for n, one in enumerate(marks) if isinstance(one, TimedRedrive) and one.run == run), None
    )
    if begun is None:
        times = [one.at for one in marks]
        return {place: bisect_left(times, at) for place, at in sent.items()}
    before = dict.fromkeys(sent, begun)
    handled = frozenset(handled)
    was_marked = {place: place in handled for place in sent}  # without those that are decided
    offsets: dict[int, list[int]] = {}
    for queue_id, offset in sorted(sent):
        offsets.setdefault(queue_id, []).append(offset)
    for number, mark in enumerate(marks[begun:], begun):
        if isinstance(mark, TimedRedrive) or mark.topic != topic:
            continue
        if isinstance(mark, TimedDeletion):
            break
        is_set, low, high = mark.change
        known = offsets.get(mark.queue_id, [])
        for offset in known[bisect_left(known, low) : bisect_left(known, high)]:
            place = mark.queue_id, offset
            if place not in was_marked:
                continue
            if is_set and mark.run != run:
                was_marked[place] = True
            elif not is_set and was_marked[place] and mark.at < sent[place]:
                before[place] = number + 1
                was_marked[place] = False
            else:
                del was_marked[place]
    return before


def _run_of(entry: Mapping[str, Any]) -> str | None:
    new = entry.get("new")
    run = new.get("run") if isinstance(new, Mapping) else None
    return run if isinstance(run, str) else None
