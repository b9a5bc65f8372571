"""The rows of ``offset orphans``."""

from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Rank, Wide


class Problem(StrEnum):
    """What is wrong."""

    TOPIC_GONE = "TOPIC_GONE"
    """Progress in a topic that is neither set up nor has messages."""
    QUEUE_GONE = "QUEUE_GONE"
    """Progress in a queue that the topic no longer has."""
    AHEAD = "AHEAD"
    """Progress beyond the end: the topic was deleted and made anew, or the log was cut."""
    LOST = "LOST"
    """Progress before the first message that is still there."""
    NO_GROUP = "NO_GROUP"
    """A retry topic of a group that has no progress and no settings."""
    NO_TOPIC = "NO_TOPIC"
    """Queues with messages of a topic that is not set up."""


class Orphan(NamedTuple):
    """An offset, a retry topic or a queue that belongs to nothing."""

    group: Annotated[str | None, "the consumer group"]
    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int | None, "the queue; null: all of them"]
    committed_offset: Annotated[int | None, "the group's progress"]
    min_offset: Annotated[int | None, "the first message that is still there"]
    max_offset: Annotated[int | None, "where the next message will be"]
    problem: Annotated[
        Problem,
        "TOPIC_GONE, QUEUE_GONE, AHEAD, LOST (progress), NO_GROUP, NO_TOPIC (topics)",
        Rank.KEY,
    ]
    fix: Annotated[str, "what --fix does, or which command helps", Rank.KEY]
    new_offset: Annotated[int | None, Wide("the progress after --fix; null: none")]


_new_row_type: Any = NamedTuple

DoneOrphan: Any = _new_row_type(
    "DoneOrphan",
    [
        *Orphan.__annotations__.items(),
        ("applied", Annotated[bool | None, "whether it was done, as read back"]),
    ],
)
"""Progress that was put right."""
