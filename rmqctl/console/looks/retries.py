"""Looks at messages that wait: the agenda of delays, and the retries of a group."""

from collections.abc import Iterable
from typing import Any, Final

from rmqctl.admin import retries
from rmqctl.admin.retries.rows import AgendaRow, RetryRow

from .look import Look, Place, Source


def _agenda(source: Source, place: Place) -> Iterable[Any]:
    return retries.agenda(source.view, source.now_ms)


def _retries(source: Source, place: Place) -> Iterable[Any]:
    found = retries.Retries(source.view, source.broker, place.name, source.now_ms)
    return found.rows(left_out=source.notice)


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
