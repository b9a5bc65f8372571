"""Facts about topics and their queues."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.validation import check_topic, is_system_topic
from rmqctl.admin.topics.rows import TopicDescription, TopicQueueRow, TopicRow
from rmqctl.errors import NotFound
from storage.configs.topics import system_topics
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker


def chosen_topics(
    broker: "EmbeddedBroker", topics: Iterable[str] | None, more: Iterable[str] | None
) -> list[str]:
    """The named topics, else all. NotFound names the first one that does not exist."""
    known = broker.topics()
    names = list(dict.fromkeys([*(topics or ()), *(more or ())]))
    for name in names:
        if name not in known:
            check_topic(name)
            raise NotFound(f"topic {name} does not exist in {broker.view.root}")
    return names or sorted(known)


def topic_rows(broker: "EmbeddedBroker") -> Iterator[TopicRow]:
    """All topics by name."""
    queues = queues_by_topic(broker)
    for name, config in sorted(broker.topics().items()):
        yield TopicRow(
            name,
            topic_kind(broker, name),
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            _messages(broker, name, queues[name]),
        )


def queue_rows(
    broker: "EmbeddedBroker", topics: Iterable[str], *, all_topics: bool
) -> Iterator[TopicQueueRow]:
    """The queues of some topics.

    ``all_topics``: of RocketMQ's own topics, which have over a thousand queues, only queues that
    had messages.
    """
    used, configs = queues_by_topic(broker), broker.topics()
    for topic in topics:
        queues = set(used[topic])
        if not (all_topics and topic_kind(broker, topic) == "system"):
            config = configs[topic]
            queues.update(range(max(config.read_queue_nums, config.write_queue_nums)))
        for queue_id in sorted(queues):
            yield queue_row(broker, topic, queue_id)


def queue_row(broker: "EmbeddedBroker", topic: str, queue_id: int) -> TopicQueueRow:
    """One queue as it is now."""
    view = broker.view
    low, high = view.queue_bounds(topic, queue_id)
    empty = low == high
    return TopicQueueRow(
        topic,
        broker.name,
        queue_id,
        low,
        high,
        high - low,
        None if empty else view.store_timestamp(topic, queue_id, low),
        None if empty else view.store_timestamp(topic, queue_id, high - 1),
    )


def descriptions(broker: "EmbeddedBroker", topics: Iterable[str]) -> Iterator[TopicDescription]:
    """Some topics in full."""
    used, configs = queues_by_topic(broker), broker.topics()
    groups = _groups(broker)
    for topic in topics:
        config = configs[topic]
        rows = [queue_row(broker, topic, queue_id) for queue_id in used[topic]]
        first = [row.first_timestamp for row in rows if row.first_timestamp is not None]
        last = [row.last_timestamp for row in rows if row.last_timestamp is not None]
        yield TopicDescription(
            topic,
            topic_kind(broker, topic),
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            config.order,
            config.topic_filter_type,
            config.topic_sys_flag,
            sum(row.count for row in rows),
            min(first, default=None),
            max(last, default=None),
            groups.get(topic, []),
        )


def queues_by_topic(broker: "EmbeddedBroker") -> Mapping[str, Sequence[int]]:
    """Queues that have or had messages, by topic."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, queue_id in broker.view.queues():
        found[topic].append(queue_id)
    return found


def _messages(broker: "EmbeddedBroker", topic: str, queues: Iterable[int]) -> int:
    bounds = (broker.view.queue_bounds(topic, queue_id) for queue_id in queues)
    return sum(bound.max_offset - bound.min_offset for bound in bounds)


def _groups(broker: "EmbeddedBroker") -> dict[str, list[str]]:
    """Groups with progress, by topic."""
    found: dict[str, list[str]] = defaultdict(list)
    for group, topic in sorted(broker.consumer_offsets()):
        found[topic].append(group)
    return found


def topic_kind(broker: "EmbeddedBroker", topic: str) -> str:
    """The kind of a topic: normal, retry, dlq or system."""
    if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        return "retry"
    if topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
        return "dlq"
    config = broker.config
    own = system_topics(config.broker_cluster_name, config.broker_name)
    return "system" if is_system_topic(topic) or topic in own else "normal"
