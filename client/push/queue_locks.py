"""Locks on queues at their brokers, for orderly consumption (RebalanceImpl.lock, lockAll, ...)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from client.errors import UNANSWERED, ClientError

if TYPE_CHECKING:
    from client.rebalance.rebalance import Rebalance
    from client.runtime.routes import Routes
    from client.timing import Clock
    from storage.format.message import MessageQueue

logger = logging.getLogger("rmqctl.client.locks")


class QueueLocks:
    """The broker locks of one orderly consumer. Safe for threads.

    A broker's lock lasts until it is released, its client leaves the group, or its process ends. So
    each lock belongs to a queue in the table, or to one that is about to get there: the lock of the
    Rebalance is held meanwhile, also during the brokers' calls.

    A broker that does not answer, or refuses, leaves things as they are; the lock of a queue that
    was not refreshed for 30 s does not count (ProcessQueue.is_lock_expired).
    """

    def __init__(self, rebalance: Rebalance, routes: Routes, clock: Clock) -> None:
        self._rebalance = rebalance
        self._routes = routes
        self._clock = clock

    def lock(self, queue: MessageQueue) -> bool:
        """Lock one queue, or refresh its lock; returns whether it is locked now."""
        with self._rebalance.lock:
            held = self._lock_queues(queue.broker_name, [queue])
            if held is None:
                return False
            self._note(held)
            return queue in held

    def lock_if_ours(self, queue: MessageQueue) -> bool:
        """Lock a queue unless it was given up meanwhile."""
        with self._rebalance.lock:
            process_queue = self._rebalance.process_queues.get(queue)
            if process_queue is None or process_queue.dropped:
                return False
            return self.lock(queue)

    def lock_all(self) -> None:
        """Lock all queues in the table, broker by broker; refused ones count as unlocked."""
        with self._rebalance.lock:
            for broker_name, queues in _by_broker(self._rebalance.process_queues).items():
                held = self._lock_queues(broker_name, queues)
                if held is None:
                    continue
                self._note(held)
                for queue in queues:
                    process_queue = self._rebalance.process_queues.get(queue)
                    if queue not in held and process_queue is not None:
                        process_queue.locked = False
                        logger.warning("a queue's lock is lost: %s", queue)

    def unlock(self, queue: MessageQueue) -> None:
        """Release a queue at its broker."""
        self._unlock_queues(queue.broker_name, [queue])

    def unlock_unless_taken(self, queue: MessageQueue) -> None:
        """Release a queue that was given up a while ago, if this consumer has not taken it
        again."""
        with self._rebalance.lock:
            if queue not in self._rebalance.process_queues:
                self.unlock(queue)

    def unlock_all(self) -> None:
        """Release all queues in the table."""
        for broker_name, queues in _by_broker(self._rebalance.process_queues).items():
            self._unlock_queues(broker_name, queues)
            for queue in queues:
                process_queue = self._rebalance.process_queues.get(queue)
                if process_queue is not None:
                    process_queue.locked = False

    def _note(self, held: Iterable[MessageQueue]) -> None:
        for queue in held:
            process_queue = self._rebalance.process_queues.get(queue)
            if process_queue is not None:
                process_queue.locked = True
                process_queue.last_lock_timestamp = self._clock.now_ms()

    def _lock_queues(
        self, broker_name: str, queues: list[MessageQueue]
    ) -> set[MessageQueue] | None:
        group, client_id = self._rebalance.group, self._rebalance.client_id
        try:
            return self._routes.broker(broker_name).lock_queues(group, client_id, queues)
        except (*UNANSWERED, ClientError, BrokerError) as error:
            logger.warning("broker %s does not lock queues: %s", broker_name, error)
            return None

    def _unlock_queues(self, broker_name: str, queues: list[MessageQueue]) -> None:
        group, client_id = self._rebalance.group, self._rebalance.client_id
        try:
            self._routes.broker(broker_name).unlock_queues(group, client_id, queues)
        except (*UNANSWERED, ClientError, BrokerError) as error:
            logger.warning("broker %s does not unlock queues: %s", broker_name, error)


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    found: dict[str, list[MessageQueue]] = {}
    for queue in sorted(queues):
        found.setdefault(queue.broker_name, []).append(queue)
    return found
