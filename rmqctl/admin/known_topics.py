"""Whether a store has topics and queues; the topics that hold copies of others' messages."""

from collections.abc import Iterable, Sequence
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


def check_queues_exist(
    view: "StoreView", topics: Sequence[str] | None, queue_ids: Iterable[int] | None
) -> None:
    """NotFound for an unknown topic, and for a queue that none of the topics has, by its settings
    or on disk. None is all of them."""
    if topics is None:
        return
    for topic in topics:
        check_topic_exists(view, topic)
    known = view.topics()
    configs = [known[topic] for topic in topics if topic in known]
    count = max((max(one.read_queue_nums, one.write_queue_nums) for one in configs), default=0)
    for queue_id in queue_ids or ():
        if queue_id >= count and not any((topic, queue_id) in view.queues() for topic in topics):
            if len(topics) == 1:
                raise NotFound(f"topic {topics[0]} has no queue {queue_id} in {view.root}")
            names = ", ".join(topics)
            raise NotFound(f"none of the topics {names} has a queue {queue_id} in {view.root}")
