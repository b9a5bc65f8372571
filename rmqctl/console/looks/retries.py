"""Looks at messages that wait: the agenda of delays, and the retries of a group."""

from collections.abc import Iterable
from typing import Any, Final

from analytics.lag.delayed import levels
from rmqctl.admin import retries
from rmqctl.admin.retries.retries import OVERDUE, WAITING, waiting_state
from rmqctl.admin.retries.rows import AgendaRow, RetryRow
from storage.format.message import dlq_topic, retry_topic

from .delayed import messages_of, waiting_rows
from .look import Look, Place, Progress, Source

_MEMORY: Final = "retries"


def _agenda(source: Source, place: Place) -> Iterable[Any]:
    found = waiting_rows(source)
    held = {
        level: [(row.topic, row.due_timestamp) for row in rows] for level, rows in found.items()
    }
    return list(retries.agenda(source.view, source.now_ms, held))


def _retries(source: Source, place: Place) -> Iterable[Any]:
    """The retries; none is read again while none has come, gone or been consumed."""
    group = place.name
    targets = (retry_topic(group), dlq_topic(group))
    held = [row for rows in waiting_rows(source).values() for row in rows if row.topic in targets]
    found = retries.Retries(
        source.view,
        source.broker,
        group,
        source.now_ms,
        held=lambda: messages_of(source, held),
    )
    doubts = [level for level in levels(source.view) if level.is_in_doubt]
    wanted = (group, held, found.ready_state(), doubts)
    kept = source.memory.get(_MEMORY)
    if kept is None or kept[0] != wanted:
        notices: list[str] = []

        def advance(done: int, total: int) -> None:
            source.advance(Progress(done, total, "messages"))

        rows = found.rows(left_out=notices.append, on_progress=advance)
        kept = source.memory[_MEMORY] = wanted, rows, notices
    for notice in kept[2]:
        source.notice(notice)
    return [_now(row, source.now_ms) for row in kept[1]]


def _now(row: RetryRow, now_ms: int) -> RetryRow:
    """A row as it is now: one that waited may be overdue."""
    if row.state not in (WAITING, OVERDUE) or row.due_timestamp is None:
        return row
    return row._replace(state=waiting_state(row.due_timestamp, now_ms))


AGENDA: Final = Look(
    "agenda",
    AgendaRow,
    _agenda,
    lambda place: ("retry", "agenda"),
    ("level", "topic", "group"),
    opens=lambda row: None if row.group is None else Place("retries", (row.group,)),
)
RETRIES: Final = Look(
    "retries",
    RetryRow,
    _retries,
    lambda place: ("retry", "browse", place.name),
    ("msg_id", "offset_msg_id"),
    opens_at=lambda row, place: Place("retry", (place.name, row.msg_id)),
)
