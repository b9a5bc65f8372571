"""The marks of dead letters in the change journal of a store, in the order of their making."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .dlq_acks import Change
from .journal import ACK, AT_TIMESTAMP, SETTLE, Journal, is_topic_deletion


class TimedMark(NamedTuple):
    """A range that was marked, or whose mark was removed, and when."""

    at: int
    """Epoch ms."""
    topic: str
    queue_id: int
    change: Change


class TimedDeletion(NamedTuple):
    """A topic that was deleted, and when: earlier marks are void, as its queues begin anew."""

    at: int
    """Epoch ms."""
    topic: str


def journalled_marks(journal: Journal) -> Iterator[TimedMark | TimedDeletion]:
    """Give what the journal has of marks: those of users, and those that were set late for a killed
    redrive; and each deletion of a topic. Raises as ``Journal.entries``.

    No time is before that of an earlier entry: a clock that was set back changes no order.
    """
    at = 0
    for entry in journal.entries():
        is_deletion = is_topic_deletion(entry)
        is_of_marks = entry.get("what") in (ACK, SETTLE) and entry.get("topic") is not None
        if not is_deletion and not is_of_marks:
            continue
        at = max(at, entry[AT_TIMESTAMP])
        if is_deletion:
            yield TimedDeletion(at, entry["topic"])
            continue
        for value, handled in ((entry["new"], True), (entry.get("old"), False)):
            if value is not None:
                for queue_id, ranges in value["handled"].items():
                    for low, high in ranges:
                        change = (handled, low, high)
                        yield TimedMark(at, entry["topic"], int(queue_id), change)
