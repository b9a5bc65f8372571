"""A look at each message that waits for its time."""

from collections.abc import Iterable
from operator import attrgetter, is_
from typing import Any, Final

from analytics.lag.delayed import doubt_of_level, first_in_doubt
from rmqctl.admin.retries.rows import DelayedRow

from .delayed import waiting_rows
from .look import Look, Place, Source

_MEMORY: Final = "each"


def _each(source: Source, place: Place) -> Iterable[Any]:
    found = waiting_rows(source)
    for level in found:
        if first_in_doubt(source.view, level) is not None:
            source.notice(doubt_of_level(level.level))
    parts = list(found.values())
    kept = source.memory.get(_MEMORY)
    if kept is None or len(kept[0]) != len(parts) or not all(map(is_, kept[0], parts)):
        rows = [row for part in parts for row in part]
        rows.sort(key=attrgetter("due_timestamp", "commitlog_offset"))
        kept = source.memory[_MEMORY] = parts, rows
    return list(kept[1])


EACH: Final = Look(
    "each",
    DelayedRow,
    _each,
    lambda place: ("retry", "agenda", "--each"),
    ("level", "queue_offset"),
)
