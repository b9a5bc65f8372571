"""Facts about topics and their queues."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.validation import check_topic
from rmqctl.admin.kinds import topic_kinds
from rmqctl.errors import NotFound
from storage.known import of_all

from .figures import TopicFigures, bounds_of_topics
from .rows import TopicDescription, TopicQueueRow, TopicRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.topics import TopicConfig
    from storage.readonly import StoreView


def list_topics(view: "StoreView", broker: "Broker") -> Iterator[TopicRow]:
    """All topics by name."""
    used, kind, configs = queues_by_topic(view), topic_kinds(view), broker.topics()
    for name, bounds in bounds_of_topics(view, {name: used[name] for name in sorted(configs)}):
        config = configs[name]
        yield TopicRow(
            name,
            kind.of(name),
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            sum(high - low for low, high in bounds.values()),
        )


def queues(
    view: "StoreView", broker: "Broker", topics: Sequence[str] = ()
) -> Iterator[TopicQueueRow]:
    """The queues of some topics; none named: of all.

    Of all: of RocketMQ's own topics, which have over a thousand queues, only those that had
    messages. NotFound names the first topic that does not exist.
    """
    used, configs = queues_by_topic(view), broker.topics()
    kind = topic_kinds(view)

    def of_topic(topic: str) -> list[int]:
        found = set(used[topic])
        if topics or kind.of(topic) != "system":
            config = configs[topic]
            found.update(range(max(config.read_queue_nums, config.write_queue_nums)))
        return sorted(found)

    return (
        _queue_row(view, broker.name, topic, queue_id)
        for topic in _chosen(view, configs, topics)
        for queue_id in of_topic(topic)
    )


def _queue_row(view: "StoreView", broker: str, topic: str, queue_id: int) -> TopicQueueRow:
    low, high = view.queue_bounds(topic, queue_id)
    empty = low == high
    return TopicQueueRow(
        topic,
        broker,
        queue_id,
        low,
        high,
        high - low,
        None if empty else view.store_timestamp(topic, queue_id, low),
        None if empty else view.store_timestamp(topic, queue_id, high - 1),
    )


def describe(
    view: "StoreView", broker: "Broker", topics: Sequence[str] = ()
) -> list[TopicDescription]:
    """Some topics in full; none named: all. NotFound names the first that does not exist."""
    used, configs = queues_by_topic(view), broker.topics()
    groups: dict[str, list[str]] = defaultdict(list)
    for group, topic in sorted(broker.consumer_offsets()):
        groups[topic].append(group)
    found, kind = [], topic_kinds(view)
    for topic in _chosen(view, configs, topics):
        config = configs[topic]
        rows = [_queue_row(view, broker.name, topic, queue_id) for queue_id in used[topic]]
        held = [row for row in rows if row.count]
        row = TopicDescription(
            topic,
            kind.of(topic),
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            config.order,
            config.topic_filter_type,
            config.topic_sys_flag,
            sum(row.count for row in rows),
            of_all(min, (row.first_timestamp for row in held)),
            of_all(max, (row.last_timestamp for row in held)),
            groups.get(topic, []),
        )
        found.append(row)
    return found


def stats(
    view: "StoreView", broker: "Broker", topics: Sequence[str] = ()
) -> Iterator[TopicFigures]:
    """Size and growth of some topics; none named: of all that have or had messages.

    NotFound names the first topic that does not exist.
    """
    used, configs = queues_by_topic(view), broker.topics()
    for topic in _chosen(view, configs, topics):
        if topics or used.get(topic):
            empty = range(configs[topic].read_queue_nums) if topics else ()
            yield TopicFigures(view, topic, {*used.get(topic, ()), *empty})


def queues_by_topic(view: "StoreView") -> Mapping[str, Sequence[int]]:
    """Queues that have or had messages, by topic."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, queue_id in view.queues():
        found[topic].append(queue_id)
    return found


def _chosen(
    view: "StoreView", known: "Mapping[str, TopicConfig]", topics: Iterable[str]
) -> list[str]:
    for name in topics:
        if name not in known:
            check_topic(name)
            raise NotFound(f"topic {name} does not exist in {view.root}")
    return list(topics) or sorted(known)
