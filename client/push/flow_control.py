"""Limits of unfinished messages above which pulling of a queue pauses (pullMessage of 4.9)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from storage.results import MOST_BYTES_TOGETHER

if TYPE_CHECKING:
    from client.listener.process_queue import Messages, ProcessQueue
    from client.runtime.pull_service import PullRequest

    from .push_consumer import PushConsumer

logger = logging.getLogger("rmqctl.client.pull")

FLOW_CONTROL_DELAY_MS: Final = 50
_LOG_EACH: Final = 1_000
_MIB_SHIFT: Final = 20


class FlowControl:
    """The thresholds of one consumer, for each of its queues.

    A rebalance changes them by the thresholds for topics. ``times`` counts the pulls that were put
    off because too much is in work.
    """

    def __init__(self, consumer: PushConsumer) -> None:
        self._consumer = consumer
        self.pull_threshold_for_queue = consumer.config.pull_threshold_for_queue
        self.pull_threshold_size_for_queue = consumer.config.pull_threshold_size_for_queue
        self.times = 0

    def divide_thresholds(self, queues: int) -> None:
        """Divide the thresholds for topics among all queues of the consumer
        (RebalancePushImpl.messageQueueChanged)."""
        config = self._consumer.config
        if queues and config.pull_threshold_for_topic != -1:
            self.pull_threshold_for_queue = max(1, config.pull_threshold_for_topic // queues)
        if queues and config.pull_threshold_size_for_topic != -1:
            share = config.pull_threshold_size_for_topic // queues
            self.pull_threshold_size_for_queue = max(1, share)

    def too_much(self, process_queue: ProcessQueue) -> str | None:
        """Name the threshold that a queue's messages in work exceed; None: it may be pulled."""
        count, size = process_queue.msg_count, process_queue.msg_size >> _MIB_SHIFT
        if count > self.pull_threshold_for_queue or size > self.pull_threshold_size_for_queue:
            return f"count={count} mib={size}"
        if count and not self._consumer.orderly:
            span = process_queue.get_max_span()
            if span > self._consumer.config.consume_concurrently_max_span:
                return f"span={span} count={count}"
        return None

    def pulls_ahead(self, process_queue: ProcessQueue, messages: Messages, size: int) -> int:
        """How often ``too_much`` would let a queue be pulled further if ``messages`` had been put,
        with bodies of ``size`` bytes, and all that these pulls may bring.

        For concurrent consumption, and pulls whose messages follow each other.
        """
        config = self._consumer.config
        first = process_queue.first_offset()
        if first is None:
            first = messages[0].queue_offset
        room = min(
            self.pull_threshold_for_queue - process_queue.msg_count - len(messages),
            config.consume_concurrently_max_span - messages[-1].queue_offset + first,
        )
        most = (self.pull_threshold_size_for_queue + 1) << _MIB_SHIFT
        spare = most - process_queue.msg_size - size  # bytes
        if room < 0 or spare <= 0:
            return 0
        return 1 if spare <= MOST_BYTES_TOGETHER else 1 + room // config.pull_batch_size

    def pause(self, request: PullRequest, too_much: str) -> int:
        """Note that a pull is put off; gives the pause in ms."""
        if self.times % _LOG_EACH == 0:
            logger.warning(
                "too much in work, pulling pauses: %s times=%d %s", too_much, self.times, request
            )
        self.times += 1
        return FLOW_CONTROL_DELAY_MS
