"""Topics and their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from broker.tables.kinds import TopicKinds

from .row_types import TopicRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.queue.reader import QueueBounds
    from storage.readonly import StoreView

    from .wanted import Wanted


def topic_rows(broker: EmbeddedBroker, name: str, wanted: Wanted) -> Iterator[TopicRow]:
    """All topics that have settings, those of the system, too."""
    bounds = bounds_by_topic(broker.view)
    kinds = TopicKinds(broker.config.broker_cluster_name, broker.config.broker_name)
    for topic, config in sorted(broker.topics().items()):
        if wanted.takes_topic(topic):
            yield TopicRow(
                name,
                topic,
                kinds.of(topic),
                config.read_queue_nums,
                config.write_queue_nums,
                config.perm,
                count(bounds.get(topic, {})),
            )


def bounds_by_topic(view: StoreView) -> dict[str, dict[int, QueueBounds]]:
    """The bounds of all queues that have or had messages."""
    queues = view.queues()
    found: dict[str, dict[int, QueueBounds]] = {}
    for (topic, queue_id), bounds in zip(queues, view.each_queue_bounds(queues), strict=True):
        found.setdefault(topic, {})[queue_id] = bounds
    return found


def count(bounds: Mapping[int, QueueBounds]) -> int:
    """How many messages some queues have."""
    return sum(high - low for low, high in bounds.values())
