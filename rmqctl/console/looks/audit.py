"""Looks at changes and their authors."""

from collections.abc import Iterable
from typing import Any, Final

from rmqctl.admin import audit
from rmqctl.admin.audit.rows import ChangeDetails, ChangeRow
from rmqctl.errors import UsageProblem

from .look import Look, Place, Source

_KEY: Final = ("change_id", "group", "topic", "queue_id", "at_timestamp", "what")


def _changes(source: Source, place: Place) -> Iterable[Any]:
    return audit.list_changes(source.view)


def _history(source: Source, place: Place) -> Iterable[Any]:
    return audit.history(source.view, source.broker, place.names, warn=source.notice)


def _of_change(row: Any) -> Place | None:
    return None if row.change_id is None else Place("change", (str(row.change_id),))


def change_id_of(place: Place) -> int:
    """The number of the change of a place. UsageProblem for another text."""
    if not (place.name.isascii() and place.name.isdigit()):
        raise UsageProblem(f"{place.name!r} is not the number of a change (':audit' lists them)")
    return int(place.name)


def _change(source: Source, place: Place) -> Iterable[Any]:
    return [audit.describe(source.view, change_id_of(place))]


CHANGE: Final = Look(
    "change",
    ChangeDetails,
    _change,
    lambda place: ("audit", "show", place.name),
    ("change_id",),
)
CHANGES: Final = Look(
    "changes",
    ChangeRow,
    _changes,
    lambda place: ("audit", "list"),
    _KEY,
    ("-at_timestamp", "-change_id"),
    opens=_of_change,
)
HISTORY: Final = Look(
    "history",
    ChangeRow,
    _history,
    lambda place: ("offset", "history", *place.names),
    _KEY,
    ("-at_timestamp", "-change_id"),
    opens=_of_change,
)
