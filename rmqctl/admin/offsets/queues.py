"""Queues whose offsets are to be moved: which ones, and where the group is in them now."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.errors import NotFound
from rmqctl.parse.lists import parse_queues
from storage.configs.consumer_offsets import split_topic_at_group, topic_at_group
from storage.configs.progress_table import ProgressTable, QueueProgress
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, LMQ_PREFIX, RETRY_GROUP_TOPIC_PREFIX

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.progress import ProgressKey
    from storage.configs.topics import TopicConfig
    from storage.readonly import StoreView


class QueueId(NamedTuple):
    """One queue of a topic, as one group reads it."""

    group: str
    topic: str
    queue_id: int

    @property
    def key(self) -> "ProgressKey":
        """The key of its progress in storage.configs.progress."""
        return topic_at_group(self.topic, self.group), self.queue_id

    def __str__(self) -> str:
        return f"queue {self.queue_id} of {self.topic} in group {self.group}"


class GroupPosition(NamedTuple):
    """Where a group is in a queue. Offsets count messages; the end is exclusive."""

    queue: QueueId
    offset: int | None
    """What is committed; None for nothing."""
    generation: int
    """Counts deliberate moves (storage.configs.progress_table)."""
    low: int
    high: int
    read_queues: int | None = None
    """How many queues of the topic are read, where this one is not among them."""

    @property
    def note(self) -> str | None:
        """A note on a queue that no group reads any more."""
        return not_read_note(self.read_queues)


def read_queues_without(config: "TopicConfig | None", queue_id: int) -> int | None:
    """How many queues of a topic are read, if this one is not among them; else None, also without
    settings."""
    if config is None or queue_id < config.read_queue_nums:
        return None
    return config.read_queue_nums


def not_read_note(read_queues: int | None) -> str | None:
    """A note on a queue that is not among these; None: it is."""
    return None if read_queues is None else f"not read: the topic has {read_queues} read queue(s)"


class TopicChoice(NamedTuple):
    """``TOPIC`` or ``TOPIC:0,2-4``; ``queues`` None stands for all of them."""

    topic: str
    queues: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """As :func:`parse_topic_choice` reads it; a light topic has no list of queues."""
        if self.queues is None or self.topic.startswith(LMQ_PREFIX):
            return self.topic
        return f"{self.topic}:{','.join(map(str, self.queues))}"


def parse_topic_choice(text: str) -> TopicChoice:
    """Read ``TOPIC`` or ``TOPIC:0,2-4``. ValueError for a malformed list of queues.

    A light topic has one queue, and may have colons in its name.
    """
    topic, colon, queues = text.rpartition(":")
    if not colon or text.startswith(LMQ_PREFIX):
        return TopicChoice(text)
    return TopicChoice(topic, parse_queues(queues))


def chosen_queues(
    view: "StoreView",
    broker: "Broker",
    progress: ProgressTable,
    groups: Collection[str] | None,
    topics: Collection[TopicChoice] | None,
    among: Collection[str] | None = None,
) -> list[QueueId]:
    """The queues of some groups and topics, sorted; None: of all that have progress.

    ``among`` narrows the topics that are taken where ``topics`` is None.
    Of a named topic every queue counts, whether or not the group has read it yet. Retry topics
    and dead letters count only if they are named. NotFound for an unknown topic or queue.
    """
    known = _topics_by_group(progress)
    there = TopicQueues(view, broker)
    found: set[QueueId] = set()
    for group in known if groups is None else groups:
        read = known.get(group, {})
        if topics is None:
            choices = [
                TopicChoice(topic)
                for topic in read
                if _is_plain(topic) and (among is None or topic in among)
            ]
        else:
            choices = [choice for choice in topics if groups is not None or choice.topic in read]
        for choice in choices:
            queues = there.of(choice.topic, read.get(choice.topic, ()))
            wanted = _wanted(choice, queues)
            found.update(QueueId(group, choice.topic, queue_id) for queue_id in wanted)
    return sorted(found)


class TopicQueues:
    """The queues of a store's topics, read once: there may be thousands."""

    def __init__(self, view: "StoreView", broker: "Broker") -> None:
        self._root = view.root
        self._topics = broker.topics()
        self._used: dict[str, list[int]] = {}
        for topic, queue_id in view.queues():
            self._used.setdefault(topic, []).append(queue_id)

    def of(self, topic: str, also: Iterable[int] = ()) -> list[int]:
        """All queues of a topic: as it is set up, as it has messages, and ``also`` these.

        NotFound if there are none.
        """
        config = self._topics.get(topic)
        queues = {*self._used.get(topic, ()), *also}
        if config is not None:
            queues.update(range(max(config.read_queue_nums, config.write_queue_nums)))
        if not queues:
            from broker.validation import check_topic

            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in {self._root}")
        return sorted(queues)


def positions(
    view: "StoreView", broker: "Broker", progress: ProgressTable, queues: Iterable[QueueId]
) -> Iterator[GroupPosition]:
    """Where groups are in queues, by ``progress`` and the bounds as they are now."""
    topics = broker.topics()
    for queue in queues:
        known = progress.get(*queue.key)
        low, high = view.queue_bounds(queue.topic, queue.queue_id)
        unread = read_queues_without(topics.get(queue.topic), queue.queue_id)
        yield GroupPosition(queue, committed(known), known.generation, low, high, unread)


def committed(progress: QueueProgress) -> int | None:
    """The offset, None for none; what Java's file has below 0 is none either."""
    offset = progress.offset
    return None if offset is None or offset < 0 else offset


def with_progress(
    progress: ProgressTable, groups: Collection[str], topics: Collection[TopicChoice] | None
) -> list[QueueId]:
    """The queues in which groups have an offset, of all topics if ``topics`` is None."""
    found = []
    for group, read in _topics_by_group(progress).items():
        if group in groups:
            for topic, queues in read.items():
                found += [
                    QueueId(group, topic, queue_id)
                    for queue_id in queues
                    if topics is None or any(_names(choice, topic, queue_id) for choice in topics)
                ]
    return sorted(found)


def group_names(progress: ProgressTable) -> set[str]:
    """All groups that have an offset anywhere."""
    return set(_topics_by_group(progress))


def _topics_by_group(progress: ProgressTable) -> Mapping[str, Mapping[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for key, offsets in progress.offsets().items():
        parts = split_topic_at_group(key)
        queues = [queue_id for queue_id, offset in offsets.items() if offset >= 0]
        if parts is not None and queues:
            found.setdefault(parts[1], {})[parts[0]] = queues
    return found


def _is_plain(topic: str) -> bool:
    return not topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX))


def _names(choice: TopicChoice, topic: str, queue_id: int) -> bool:
    return choice.topic == topic and (choice.queues is None or queue_id in choice.queues)


def _wanted(choice: TopicChoice, queues: list[int]) -> list[int]:
    check_queues(choice, queues)
    return queues if choice.queues is None else list(choice.queues)


def check_queues(choice: TopicChoice, queues: list[int]) -> None:
    """NotFound for a queue that a topic with these ``queues`` does not have."""
    for queue_id in choice.queues or ():
        if queue_id not in queues:
            has = (
                f"it has {queues[0]} to {queues[-1]}"
                if len(queues) > 1
                else f"it has one, {queues[0]}"
            )
            raise NotFound(f"topic {choice.topic} has no queue {queue_id}: {has}")


def check_queue_ids(there: Mapping[str, Collection[int]], queues: Iterable[int]) -> None:
    """NotFound for an id that none of the topics, with their queues, has."""
    known = set().union(*there.values())
    missing = set(queues) - known
    if missing:
        topics = ", ".join(sorted(there))
        raise NotFound(f"--queue: {topics} has no queue {_listed(missing)}, but {_listed(known)}")


def no_progress(
    groups: Iterable[str] | None,
    topics: Iterable[str] | None,
    queues: Collection[int] | None = None,
) -> str:
    """The beginning of a sentence: what there is no progress of. None: of any."""
    who = f"group {', '.join(groups)} has no" if groups else "no group has"
    where = f"topic {', '.join(topics)}" if topics else "any topic"
    if queues is not None:
        where = f"queue {_listed(queues)} of {where}"
    return f"{who} progress in {where}"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
