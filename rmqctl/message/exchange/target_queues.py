"""The queues that imported messages go to."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from broker.errors import NoPermissionError
from broker.validation import check_changeable_topic
from storage.configs.topics import TopicConfig
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from storage.format.shapes import MAX_QUEUES

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_OF_GROUPS: Final = (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)


class TargetQueues:
    """Gives each message the queue of its old number.

    A topic without settings gets at least ``of_new_topics`` queues (topics of groups: one) and
    those that it has on disk, and more as messages need them; :meth:`make` creates it. An existing
    topic is left as it is: the number of a queue that it lacks is refused, or with ``fold`` taken
    modulo, so that the messages of one queue stay in one queue, in order.
    """

    def __init__(self, broker: "EmbeddedBroker", of_new_topics: int, *, fold: bool) -> None:
        self._broker = broker
        self._of_new_topics = of_new_topics
        self._fold = fold
        self._known: dict[str, int] = {}
        self._on_disk: dict[str, int] = {}
        self._new: set[str] = set()
        self._to_make: dict[str, int] = {}

    def queue(self, topic: str, queue_id: int) -> int:
        """The queue of a message. ValueError if the topic lacks it, and for a topic that cannot be
        made."""
        if queue_id >= MAX_QUEUES:
            raise ValueError(f"was in queue {queue_id}; the last one is {MAX_QUEUES - 1}")
        self._prepare(topic, queue_id + 1)
        count = self._known[topic]
        if queue_id < count:
            return queue_id
        if self._fold:
            return queue_id % max(1, count)
        queues = "1 queue" if count == 1 else f"{count} queues"
        raise ValueError(
            f"was in queue {queue_id}, and topic {topic} has {queues}; "
            f"'rmqctl topic alter {topic} --queues {queue_id + 1}' adds some, or --fold-queues "
            f"stores it in queue {queue_id % max(1, count)}"
        )

    def make(self, topics: Iterable[str]) -> None:
        """Create the new ones of some topics, or give them the queues that they lack. The others
        stay as they are: a refused message makes no topic."""
        for topic in topics:
            count = self._to_make.pop(topic, None)
            if count is not None:
                self._broker.update_topic(TopicConfig(topic, count, count))

    def _prepare(self, topic: str, needed: int) -> None:
        """Note that a new topic has to have so many queues."""
        if topic not in self._known:
            config = self._broker.topic(topic)
            if config is None or config.derived:
                _check_new(topic)
                self._new.add(topic)
            self._known[topic] = 0 if config is None else config.write_queue_nums
            self._on_disk[topic] = 0 if config is None else config.read_queue_nums
        if topic in self._new and needed > self._known[topic]:
            least = 1 if topic.startswith(_OF_GROUPS) else self._of_new_topics
            count = max(needed, least, self._on_disk[topic])
            self._known[topic] = self._to_make[topic] = count


def _check_new(topic: str) -> None:
    """ValueError for a topic that cannot be made: its queues would be files of another folder."""
    try:
        check_changeable_topic(topic)
    except NoPermissionError as error:
        raise ValueError(str(error)) from None
