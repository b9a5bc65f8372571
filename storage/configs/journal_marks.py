"""The marks of dead letters in the change journal of a store, in the order of their making."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .dlq_acks import Change
from .journal import ACK, AT_TIMESTAMP, SETTLE, Journal


class TimedMark(NamedTuple):
    """A range that was marked, or whose mark was removed, and when."""

    at: int
    """Epoch ms."""
    topic: str
    queue_id: int
    change: Change


def journalled_marks(journal: Journal) -> Iterator[TimedMark]:
    """Give what the journal has of marks: those of users, and those that were set late for a killed
    redrive. Raises as ``Journal.entries``.

    No time is before that of an earlier entry: a clock that was set back changes no order.
    """
    at = 0
    for entry in journal.entries():
        if entry.get("what") not in (ACK, SETTLE) or entry.get("topic") is None:
            continue
        at = max(at, entry[AT_TIMESTAMP])
        for value, handled in ((entry["new"], True), (entry.get("old"), False)):
            if value is not None:
                for queue_id, ranges in value["handled"].items():
                    for low, high in ranges:
                        change = (handled, low, high)
                        yield TimedMark(at, entry["topic"], int(queue_id), change)
