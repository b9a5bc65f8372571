"""Looks at consumer groups: their lag, queues and members."""

from collections.abc import Iterable
from typing import Any, Final

from analytics.lag.selection import Choice
from rmqctl.admin import groups, lag
from rmqctl.admin.groups.rows import GroupClientRow
from rmqctl.admin.lag.rows import LagQueueRow, LagRow

from .look import Look, Place, Source


def _lags(source: Source, place: Place) -> Iterable[Any]:
    return lag.group_rows(_seen(source, Choice()))


def _queues(source: Source, place: Place) -> Iterable[Any]:
    return lag.queue_rows(_seen(source, Choice([place.name])))


def _seen(source: Source, choice: Choice) -> Any:
    seen = lag.look(source.view, source.broker, source.now_ms, choice)
    for sentence in lag.unknown_sentences(seen):
        source.notice(sentence)
    return seen


def _members(source: Source, place: Place) -> Iterable[Any]:
    ask = source.broker.members.calls.consumer_running_info
    return groups.clients(source.view, source.broker, [place.name], ask=ask)


GROUPS: Final = Look(
    "groups",
    LagRow,
    _lags,
    lambda place: ("lag", "show"),
    ("group", "topic"),
    ("-lag",),
    opens=lambda row: Place("group", (row.group,)),
)
QUEUES: Final = Look(
    "queues",
    LagQueueRow,
    _queues,
    lambda place: ("lag", "show", place.name, "--by", "queue"),
    ("group", "topic", "queue_id"),
    ("-lag",),
)
MEMBERS: Final = Look(
    "members",
    GroupClientRow,
    _members,
    lambda place: ("group", "clients", place.name),
    ("client_id",),
)
