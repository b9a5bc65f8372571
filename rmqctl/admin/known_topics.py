"""Whether a store has a topic, and the topics that hold copies of other topics' messages."""

from typing import TYPE_CHECKING, Final

from rmqctl.errors import NotFound
from storage.format.message import (
    SCHEDULE_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
)

if TYPE_CHECKING:
    from storage.readonly import StoreView

INNER_TOPICS: Final = frozenset(
    {SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC}
)
"""Topics in which the broker stores messages that are also in another topic, now or later."""


def all_topics(view: "StoreView") -> list[str]:
    """All topics that have settings or a queue, sorted."""
    return sorted({*view.topics(), *(topic for topic, _ in view.queues())})


def check_topic_exists(view: "StoreView", topic: str) -> None:
    """NotFound for an unknown topic; an illegal name has an error of its own."""
    if topic in view.topics() or any(name == topic for name, _ in view.queues()):
        return
    from broker.validation import check_topic

    check_topic(topic)
    raise NotFound(f"topic {topic} does not exist in {view.root}")
