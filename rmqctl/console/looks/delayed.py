"""The messages that wait for their time, kept from one look to the next: only new ones are read."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from analytics.lag.delayed import DelayedMessages, Level, levels, waiting
from rmqctl.admin.retries.due_list import delayed_row
from rmqctl.admin.retries.rows import DelayedRow
from storage.configs.early_deliveries import EarlyDeliveries
from storage.format.message import SCHEDULE_TOPIC

from .look import Progress, Source

_MEMORY: Final = "delayed"


class _Kept(NamedTuple):
    """What waited in a level: its rows in the order of its queue."""

    level: Level
    begin: int
    """The first offset that waits."""
    ended: frozenset[tuple[int, int]]
    """What was delivered early: queue offset and log offset."""
    rows: list[DelayedRow]


def waiting_rows(source: Source) -> Mapping[Level, list[DelayedRow]]:
    """What waits in each level. A list is the same object as long as nothing comes or goes.

    What was read of a level stays where the look is stopped in a later one.
    """
    kept: dict[int, _Kept] = source.memory.setdefault(_MEMORY, {})
    found = levels(source.view)
    early = EarlyDeliveries(source.view.root)
    for level in found:
        ended = frozenset(early.of(level.queue_id))
        kept[level.level] = _look(source, level, ended, kept.get(level.level))
    return {level: kept[level.level].rows for level in found}


def _look(
    source: Source, level: Level, ended: frozenset[tuple[int, int]], before: _Kept | None
) -> _Kept:
    head = next(waiting(source.view, level), None)
    begin = level.max_offset if head is None else head.message.queue_offset
    rows: list[DelayedRow] = []
    at = begin
    if before is not None and _goes_on(before, level, begin, ended):
        rows, at = before.rows, max(begin, before.level.max_offset)
        if before.begin != begin or before.ended != ended:
            rows = [
                row
                for row in rows
                if row.queue_offset >= begin
                and (row.queue_offset, row.commitlog_offset) not in ended
            ]
    if at < level.max_offset:
        new = []
        for one in waiting(source.view, level, at):
            done = one.message.queue_offset - at
            source.advance(Progress(done, level.max_offset - at, "messages"))
            new.append(delayed_row(one))
        rows = [*rows, *new]
    return _Kept(level, begin, ended, rows)


def _goes_on(before: _Kept, level: Level, begin: int, ended: frozenset[tuple[int, int]]) -> bool:
    """Whether a level only lost messages at its head, or in between, and got others at its end."""
    again = any(offset >= begin for offset, _ in before.ended - ended)
    return (
        before.level.delay_ms == level.delay_ms
        and before.begin <= begin
        and before.level.max_offset <= level.max_offset
        and not again
    )


def messages_of(source: Source, rows: list[DelayedRow]) -> Iterator[DelayedMessages]:
    """The messages of rows; without those that cannot be read any more."""
    for done, row in enumerate(rows):
        source.advance(Progress(done, len(rows), "messages"))
        at = SCHEDULE_TOPIC, row.level - 1, row.queue_offset
        unit = source.view.unit(*at)
        message = None if unit is None else source.view.message_of_unit(*at, unit)
        if message is not None:
            due, topic, queue_id = row.due_timestamp, row.topic, row.queue_id
            yield DelayedMessages(message, row.level, due, topic, queue_id)
