"""Looks at topics and their queues."""

from collections.abc import Iterable
from typing import Any, Final

from rmqctl.admin import topics
from rmqctl.admin.topics.rows import TopicQueueRow, TopicRow

from .look import Look, Place, Source


def _topics(source: Source, place: Place) -> Iterable[Any]:
    return topics.list_topics(source.view, source.broker)


def _queues(source: Source, place: Place) -> Iterable[Any]:
    return topics.queues(source.view, source.broker, [place.name])


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
)
