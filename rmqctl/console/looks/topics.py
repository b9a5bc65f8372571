"""Looks at topics and their queues."""

from collections.abc import Iterable
from typing import Any, Final

from analytics.lag.selection import Choice
from rmqctl.admin import topics
from rmqctl.admin.lag.rows import LagRow
from rmqctl.admin.topics.rows import TopicDescription, TopicQueueRow, TopicRow, TopicStatsRow

from .lag import lag_rows
from .look import Look, Place, Source


def _topics(source: Source, place: Place) -> Iterable[Any]:
    return topics.list_topics(source.view, source.broker)


def _queues(source: Source, place: Place) -> Iterable[Any]:
    return topics.queues(source.view, source.broker, [place.name])


def _description(source: Source, place: Place) -> Iterable[Any]:
    return topics.describe(source.view, source.broker, [place.name])


def _readers(source: Source, place: Place) -> Iterable[Any]:
    return lag_rows(source, Choice(None, [place.name]))


def _hours(source: Source, place: Place) -> Iterable[Any]:
    for found in topics.stats(source.view, source.broker, [place.name]):
        yield from found.by_hour(source.zone, source.notice)


DESCRIPTION: Final = Look(
    "description",
    TopicDescription,
    _description,
    lambda place: ("topic", "describe", place.name),
    ("topic",),
)
READERS: Final = Look(
    "readers",
    LagRow,
    _readers,
    lambda place: ("lag", "show", f"--topic={place.name}"),
    ("group", "topic"),
    ("-lag",),
    opens=lambda row: Place("group", (row.group,)),
)
HOURS: Final = Look(
    "hours",
    TopicStatsRow,
    _hours,
    lambda place: ("topic", "stats", place.name, "--by", "hour"),
    ("from_timestamp",),
    walk=True,
)
TOPICS: Final = Look(
    "topics",
    TopicRow,
    _topics,
    lambda place: ("topic", "list"),
    ("topic",),
    users_only=True,
    opens=lambda row: Place("topic", (row.topic,)),
)
QUEUES: Final = Look(
    "queues",
    TopicQueueRow,
    _queues,
    lambda place: ("topic", "queues", place.name),
    ("broker", "queue_id"),
    opens=lambda row: Place("messages", (row.topic, str(row.queue_id))),
    named=("queue_id",),
)
