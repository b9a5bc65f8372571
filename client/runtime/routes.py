"""The queues of a topic, over all brokers of a client (its route info).

There is no name server: each broker is asked itself. Its answer is kept until ``refresh``, as
clients keep routes between two polls (30 s), and a broker that does not answer keeps its queues.
MQClientInstance.topicRouteData2TopicPublishInfo and topicRouteData2TopicSubscribeInfo.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.send import DEFAULT_TOPIC_QUEUE_NUMS
from broker.errors import BrokerError
from client.errors import UNANSWERED, BrokerNotExistError, ClientConfigError
from storage.format.message import AUTO_CREATE_TOPIC_KEY_TOPIC, MessageQueue

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.topics import TopicConfig

logger: Final = logging.getLogger("rmqctl.client.routes")


class _Route(NamedTuple):
    """The route of a topic; ``found`` holds its settings on each broker that has it."""

    found: Mapping[str, TopicConfig]
    publish: tuple[MessageQueue, ...]
    subscribe: tuple[MessageQueue, ...]


class Routes:
    """Brokers by name, and the queues of topics on them. Safe for threads.

    No lock is held during a broker's call.
    """

    def __init__(self, brokers: Iterable[Broker] = ()) -> None:
        self._lock = threading.Lock()  # guards the tables; they are replaced, never changed
        self.by_name: Mapping[str, Broker] = {}
        """All known brokers; another mapping when one comes or goes."""
        self._routes: dict[str, _Route] = {}
        self._expected: dict[str, tuple[MessageQueue, ...]] = {}  # of topics to be created
        for broker in brokers:
            self.add(broker)

    def add(self, broker: Broker) -> None:
        """Add a broker; its queues appear with the next refresh, or a topic's first use.

        Raises ClientConfigError if another one has its name: the name distinguishes queues.
        """
        name = broker.name
        with self._lock:
            known = self.by_name.get(name)
            if known is not None and known is not broker:
                raise ClientConfigError(
                    f"two brokers are called {name}; give one of them another broker_name"
                )
            self.by_name = {**self.by_name, name: broker}

    def remove(self, name: str) -> None:
        """Remove a broker; its queues vanish with the next refresh. Unknown names are fine."""
        with self._lock:
            self.by_name = {k: v for k, v in self.by_name.items() if k != name}

    def broker(self, name: str) -> Broker:
        """Give the broker of a queue. Raises BrokerNotExistError."""
        brokers = self.by_name
        found = brokers.get(name)
        if found is None:
            raise BrokerNotExistError(name, sorted(brokers))
        return found

    def brokers(self) -> list[Broker]:
        """Give all known brokers, sorted by name."""
        return [broker for _, broker in sorted(self.by_name.items())]

    def brokers_of(self, topic: str) -> list[Broker]:
        """Give the brokers that have a topic, sorted by name; empty if none does."""
        found = self._route(topic).found
        return [broker for name, broker in sorted(self.by_name.items()) if name in found]

    def publish_queues(
        self,
        topic: str,
        default_topic: str = AUTO_CREATE_TOPIC_KEY_TOPIC,
        default_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS,
    ) -> list[MessageQueue]:
        """Give the queues that may be written, by broker and id; empty if there is no route.

        A topic that no broker has gets the queues that it would be created with: on each broker
        that has ``default_topic``, as many as that, but at most ``default_queue_nums``. Each broker
        that a message comes to creates it, and after the next refresh only these have it
        (RocketMQ's TBW102 rule).
        """
        return list(self.queues_to(topic, default_topic, default_queue_nums))

    def known_queues_to(self, topic: str) -> tuple[MessageQueue, ...]:
        """Give the same from the cache; empty: it must be requested."""
        expected = self._expected.get(topic)
        if expected is not None:
            return expected
        route = self._routes.get(topic)
        return () if route is None else route.publish

    def queues_to(
        self, topic: str, default_topic: str, default_queue_nums: int
    ) -> tuple[MessageQueue, ...]:
        """Give the result of ``publish_queues``, once a message: nothing is copied."""
        known = self.known_queues_to(topic)
        if known:
            return known
        route = self._route(topic)
        if route.found or not default_topic:
            return route.publish
        default = self._route(default_topic).found
        expected = tuple(
            MessageQueue(topic, name, queue_id)
            for name, config in sorted(default.items())
            if config.writeable
            for queue_id in range(min(default_queue_nums, config.read_queue_nums))
        )
        if expected:
            with self._lock:
                self._expected = {**self._expected, topic: expected}
        return expected

    def subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """Give the queues that may be read, by broker and id; empty if there is no route."""
        return list(self._route(topic).subscribe)

    def refresh(self) -> set[str]:
        """Ask all brokers again for the topics in use; gives those whose queues have changed."""
        expected = self._expected  # before the routes: each of them has one
        brokers, routes = self.by_name, self._routes
        fresh = {topic: _ask(topic, brokers, route.found) for topic, route in routes.items()}
        kept = {
            topic: tuple(queue for queue in queues if queue.broker_name in brokers)
            for topic, queues in expected.items()
            if not fresh[topic].found
        }
        with self._lock:
            self._routes = {**self._routes, **fresh}
            late = {t: queues for t, queues in self._expected.items() if t not in expected}
            self._expected = {**kept, **late}
        return {
            topic
            for topic, route in routes.items()
            if fresh[topic].subscribe != route.subscribe
            or kept.get(topic, fresh[topic].publish) != expected.get(topic, route.publish)
        }

    def _route(self, topic: str) -> _Route:
        """Give the cached route; a topic that no broker had is requested each time."""
        known = self._routes.get(topic)
        if known is not None and known.found:
            return known
        asked = _ask(topic, self.by_name, {})
        with self._lock:
            self._routes = {**self._routes, topic: asked}
        return asked


def _ask(topic: str, brokers: Mapping[str, Broker], known: Mapping[str, TopicConfig]) -> _Route:
    """Ask each broker for a topic's settings; one that does not answer keeps its last answer."""
    found: dict[str, TopicConfig] = {}
    for name, broker in sorted(brokers.items()):
        try:
            config = broker.topic(topic)
        except (*UNANSWERED, BrokerError) as error:
            logger.warning("broker %s does not say what topic %s is: %s", name, topic, error)
            config = known.get(name)
        if config is not None:
            found[name] = config
    publish = tuple(
        MessageQueue(topic, name, queue_id)
        for name, config in found.items()
        if config.writeable
        for queue_id in range(config.write_queue_nums)
    )
    subscribe = tuple(
        MessageQueue(topic, name, queue_id)
        for name, config in found.items()
        if config.readable
        for queue_id in range(config.read_queue_nums)
    )
    return _Route(found, publish, subscribe)
