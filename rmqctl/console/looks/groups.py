"""Looks at consumer groups: their lag, queues and members."""

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from analytics.lag.selection import Choice
from broker.errors import BrokerSystemError
from rmqctl.admin import groups, lag
from rmqctl.admin.groups.rows import GroupClientRow
from rmqctl.admin.lag.rows import LagQueueRow, LagRow

from .lag import lag_rows, seen_lag
from .look import Look, Place, Source


def _lags(source: Source, place: Place) -> Iterable[Any]:
    return lag_rows(source, Choice())


def _lags_of(source: Source, place: Place) -> Iterable[Any]:
    return lag_rows(source, Choice([place.name]))


def _queues(source: Source, place: Place) -> Iterable[Any]:
    return lag.queue_rows(seen_lag(source, Choice([place.name])))


def _messages(row: Any) -> Place:
    """The messages of a queue from the group's progress on."""
    start = () if row.committed_offset is None else (str(row.committed_offset),)
    return Place("messages", (row.topic, str(row.queue_id), *start))


def _members(source: Source, place: Place) -> Iterable[Any]:
    return groups.clients(source.view, source.broker, [place.name], ask=_unasked)


def _unasked(group: str, client_id: str) -> NoReturn:
    """Ask nothing: a question is a file in the store, and one that is not answered takes 10 s."""
    raise BrokerSystemError(f"member {client_id} of group {group} is not asked")


GROUPS: Final = Look(
    "groups",
    LagRow,
    _lags,
    lambda place: ("lag", "show"),
    ("group", "topic"),
    ("-lag",),
    opens=lambda row: Place("group", (row.group,)),
)
GROUP: Final = Look(
    "group",
    LagRow,
    _lags_of,
    lambda place: ("lag", "show", place.name),
    ("group", "topic"),
    ("-lag",),
)
QUEUES: Final = Look(
    "queues",
    LagQueueRow,
    _queues,
    lambda place: ("lag", "show", place.name, "--by", "queue"),
    ("group", "topic", "queue_id"),
    ("-lag",),
    opens=_messages,
    named=("queue_id",),
)
MEMBERS: Final = Look(
    "members",
    GroupClientRow,
    _members,
    lambda place: ("group", "clients", place.name),
    ("client_id",),
)
