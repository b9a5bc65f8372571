"""Which queues a consumer has, and how that changes (RebalanceImpl of 4.9).

Members do not talk to each other: each sorts the same queues and the same client ids and uses the
same strategy. The lock of a Rebalance is held for a whole round, and by each thread that takes
queues out of the table at another time; brokers are called under it, listeners never run under it.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from broker.api.members import ConsumeType, MessageModel, SubscriptionData
from broker.errors import BrokerError
from client.errors import UNANSWERED, ClientError
from client.listener.process_queue import ProcessQueue
from client.runtime.pull_service import PullRequest
from client.timing import SYSTEM_CLOCK
from storage.deadlines import Deadline, held_within
from storage.format.message import RETRY_GROUP_TOPIC_PREFIX, MessageQueue

if TYPE_CHECKING:
    from client.runtime.routes import Routes
    from client.timing import Clock

    from .allocate import AllocateMessageQueueStrategy

logger = logging.getLogger("rmqctl.client.rebalance")


_ROUND_S: Final = 0.3
CONSUME_LOCK_WAIT_MS: Final = 1_000
"""How long a round waits for the listeners of queues that it gives away, all together."""


class RebalanceRules(Protocol):
    """The parts in which push and lite pull consumers differ (RebalancePushImpl, ...LitePull...).

    ``consume_type`` is passive for a consumer whose pull loop is restarted when it stops.
    """

    consume_type: ConsumeType

    def lock(self, queue: MessageQueue) -> bool:
        """Lock a queue at its broker, for orderly consumption."""
        ...

    def unlock(self, queue: MessageQueue) -> None:
        """Release a queue that was locked and then not taken."""
        ...

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Remove what is in memory of a queue's progress."""
        ...

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Give the first offset to pull. May raise a broker's errors: the next round retries."""
        ...

    def drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Mark a queue as dropped, after its finished messages are noted."""
        ...

    def remove_unnecessary_message_queue(
        self, queue: MessageQueue, process_queue: ProcessQueue
    ) -> bool:
        """Give up a queue that is dropped already; False if it cannot be given away yet."""
        ...

    def message_queue_changed(
        self, topic: str, all_queues: Sequence[MessageQueue], divided: Sequence[MessageQueue]
    ) -> None:
        """Take note that the queues of a topic have changed."""
        ...

    def dispatch_pull_requests(self, requests: Sequence[PullRequest]) -> None:
        """Begin to pull new queues."""
        ...


class Rebalance:
    """The queues of one consumer. Safe for threads.

    Any thread may read ``subscriptions`` (by topic) and ``process_queues``: single reads and writes
    of a dict are atomic, and iteration is over copies.
    """

    def __init__(
        self,
        group: str,
        client_id: str,
        routes: Routes,
        rules: RebalanceRules,
        strategy: AllocateMessageQueueStrategy,
        *,
        message_model: MessageModel,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.group = group
        self.client_id = client_id
        self.message_model = message_model
        self.strategy = strategy
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.process_queues: dict[MessageQueue, ProcessQueue] = {}
        self.lock = threading.RLock()
        self.waits_for_work = Deadline(0)
        """Until when the holder of the lock waits for listeners of queues that are given away."""
        self._routes = routes
        self._rules = rules
        self._clock = clock

    def queues(self) -> list[MessageQueue]:
        """Give the queues in the table, sorted."""
        return sorted(self.process_queues)

    def do_rebalance(self, *, orderly: bool = False) -> None:
        """Divide the queues of all topics anew; a topic that fails does not stop the others.

        Nor does an exit of the strategy, or of the offset store, end the thread.
        """
        with self.lock:
            self.wait_for_work_from_now()
            for topic in list(self.subscriptions):
                try:
                    self._rebalance_by_topic(topic, orderly)
                except (Exception, SystemExit):
                    if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                        logger.exception("a rebalance failed: group=%s topic=%s", self.group, topic)
            self.truncate_message_queue_not_my_topic()

    def wait_for_work_from_now(self) -> None:
        """Let listeners of queues that are given away have a second, together. Needs the lock."""
        self.waits_for_work = Deadline(CONSUME_LOCK_WAIT_MS / 1000)

    def drop_all(self) -> None:
        """Give up all queues at once, without notices (destroy).

        Waits for a round that runs, but not for one that does not end.
        """
        with held_within(self.lock, _ROUND_S):
            for process_queue in list(self.process_queues.values()):
                process_queue.dropped = True
            self.process_queues.clear()

    def _rebalance_by_topic(self, topic: str, orderly: bool) -> None:
        queues = self._routes.subscribe_queues(topic)
        if not queues:
            if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                logger.warning("the topic has no queues: group=%s topic=%s", self.group, topic)
            return
        divided = sorted(queues)
        if self.message_model is MessageModel.CLUSTERING:
            client_ids = self._consumer_ids(topic)
            if not client_ids:
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    # A shutdown checks this as well, after it has unregistered.
                    logger.info("no members are known: group=%s topic=%s", self.group, topic)
                return
            divided = self.strategy.allocate(self.group, self.client_id, divided, client_ids) or []
        if self._update_process_queues(topic, divided, orderly):
            self._rules.message_queue_changed(topic, queues, divided)

    def _consumer_ids(self, topic: str) -> list[str]:
        """Ask one of the topic's brokers for the group's members, sorted; empty if it does not
        answer."""
        brokers = self._routes.brokers_of(topic)
        if not brokers:
            return []
        broker = random.choice(brokers)
        try:
            return broker.consumer_ids(self.group)
        except (*UNANSWERED, BrokerError) as error:
            logger.warning("broker %s does not tell the members: %s", broker.name, error)
            return []

    def _update_process_queues(
        self, topic: str, assigned: Sequence[MessageQueue], orderly: bool
    ) -> bool:
        """Fit the table to the assigned queues; returns whether it has changed."""
        wanted = set(assigned)
        going = {}
        for queue, process_queue in list(self.process_queues.items()):
            if queue.topic != topic:
                continue
            if queue in wanted:
                # A queue that was dropped and could not be given away yet, or is to restart, is
                # ours again; RocketMQ leaves it alone until its pull loop has stood still for 120
                # s.
                anew = process_queue.dropped and not process_queue.offset_illegal
                if not anew:
                    if (
                        self._rules.consume_type is not ConsumeType.CONSUME_PASSIVELY
                        or not process_queue.is_pull_expired()
                    ):
                        continue
                    logger.error("BUG: the pull loop of %s stands still; it is made anew", queue)
            going[queue] = process_queue
        given_up = self._give_up(going)
        requests = []
        try:
            for queue in assigned:
                if queue not in self.process_queues:
                    request = self._take(queue, orderly)
                    if request is not None:
                        requests.append(request)
        finally:  # queues in the table are pulled, even if the next one failed
            self._rules.dispatch_pull_requests(requests)
        return bool(given_up or requests)

    def _give_up(self, going: Mapping[MessageQueue, ProcessQueue]) -> list[MessageQueue]:
        """Drop queues; gives those that have left the table. The next round tries the others again.

        All are dropped before the first one is waited for: their listeners end beside each other.
        """
        rules = self._rules
        dropped = [queue for queue in going if self._done(rules.drop, queue, going[queue])]
        given_up = []
        for queue in dropped:
            if self._done(rules.remove_unnecessary_message_queue, queue, going[queue]):
                self.process_queues.pop(queue, None)
                logger.info("gave up a queue: group=%s queue=%s", self.group, queue)
                given_up.append(queue)
        return given_up

    def _done(
        self,
        step: Callable[[MessageQueue, ProcessQueue], bool | None],
        queue: MessageQueue,
        process_queue: ProcessQueue,
    ) -> bool:
        """Do a step of giving a queue up; False if it failed, or its answer is False."""
        try:
            return step(queue, process_queue) is not False
        except (Exception, SystemExit):  # a user's own offset store may raise any error
            logger.exception("a queue cannot be given up: group=%s queue=%s", self.group, queue)
            return False

    def _take(self, queue: MessageQueue, orderly: bool) -> PullRequest | None:
        """Take a queue; None if that has to wait for the next round."""
        # RocketMQ locks in BROADCASTING too, which leaves all members but one without queues.
        needs_lock = orderly and self.message_model is MessageModel.CLUSTERING
        if needs_lock and not self._rules.lock(queue):
            logger.warning("a queue is still locked: group=%s queue=%s", self.group, queue)
            return None
        process_queue = ProcessQueue(self._clock)
        process_queue.locked = True
        try:
            self._rules.remove_dirty_offset(queue)
            next_offset = self._rules.compute_pull_from_where(queue)
        except (Exception, SystemExit) as error:  # a user's own offset store may raise any error
            unexpected = not isinstance(error, (*UNANSWERED, ClientError, BrokerError))
            text = "no first offset: group=%s queue=%s: %s"
            logger.warning(text, self.group, queue, error, exc_info=unexpected)
            if needs_lock:  # it may be another member's in the next round
                self._rules.unlock(queue)
            return None
        self.process_queues[queue] = process_queue
        logger.info("took a queue: group=%s queue=%s offset=%d", self.group, queue, next_offset)
        return PullRequest(self.group, queue, process_queue, next_offset)

    def truncate_message_queue_not_my_topic(self) -> None:
        """Give up queues of topics that are subscribed no more. Needs the lock."""
        going = {
            queue: process_queue
            for queue, process_queue in list(self.process_queues.items())
            if queue.topic not in self.subscriptions
        }
        for topic in sorted({queue.topic for queue in self._give_up(going)}):
            self._rules.message_queue_changed(topic, (), ())
