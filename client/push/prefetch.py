"""Pulling a queue with a backlog several times before its messages go on.

They go on as one run of the process queue and one job of the listener's threads, which costs as
much for 512 messages as for 32. One request to the broker covers all these pulls.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.api.pull import PullRequest as PullMessage, PullResult, PullStatus
from broker.errors import BrokerError
from client.consumer.pull_result import messages_of
from client.consumer.subscription import selects_alike
from client.errors import UNANSWERED, ClientError
from client.listener.process_queue import run_of

if TYPE_CHECKING:
    from broker.api.members import SubscriptionData
    from client.listener.process_queue import Objects, ProcessQueue
    from client.runtime.pull_service import PullRequest

    from .pull_loop import FlowControl
    from .push_consumer import PushConsumer

logger = logging.getLogger("rmqctl.client.pull")

_MOST_PULLS: Final = 16
"""How often a queue is pulled before its messages go on, at most: as much as a thread of WorkerPool
does in one turn, and half of what a queue may hold."""


class Backlog:
    """Pulls the messages after an answer, for one consumer.

    Only where it makes no visible difference: flow control would allow the pulls if the messages
    had been put, and requests to the listener end where a pull ends.
    """

    def __init__(self, consumer: PushConsumer, flow_control: FlowControl) -> None:
        self._consumer = consumer
        self._flow_control = flow_control

    def pull_more(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        wire: PullMessage,
        result: PullResult,
        messages: Objects,
        pulls: int,
    ) -> tuple[PullResult, Objects, int]:
        """Go on after a result that ``wire`` has brought by so many pulls, and its messages, at
        least one; gives the last result, all messages, and the number of pulls."""
        size, found = 0, messages
        while pulls < _MOST_PULLS and self._may_go_on(request.process_queue):
            run = run_of(found, found[0].queue_offset - 1)
            if run is None:
                break  # a hook has changed their order
            size += run[1]
            most = self._flow_control.pulls_ahead(request.process_queue, messages, size)
            if self._consumer.filter_message_hooks:  # they see each pull
                most = min(most, 1)
            most = min(most, _MOST_PULLS - pulls)
            more = self._more(request, subscription, wire, result, most) if most else None
            if more is None:
                break
            result, found = more
            messages += found
            pulls += -(-len(result.messages) // wire.max_msg_nums)
        return result, messages, pulls

    def pulls_at_once(self, process_queue: ProcessQueue) -> int:
        """How many pulls of a queue one request may cover."""
        if not self._may_go_on(process_queue):
            return 1
        return min(_MOST_PULLS, self._flow_control.pulls_at_once(process_queue))

    def _may_go_on(self, process_queue: ProcessQueue) -> bool:
        consumer = self._consumer
        config = consumer.config
        return not (
            consumer.orderly
            or consumer.paused
            or config.pull_interval_ms > 0
            or config.pull_batch_size % config.consume_message_batch_max_size
            or process_queue.dropped
        )

    def _more(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        wire: PullMessage,
        result: PullResult,
        pulls: int,
    ) -> tuple[PullResult, Objects] | None:
        """Pull further, after a result; None if there is no usable result.

        An unusable one comes again with the next pull, and is processed then. It does not wait, and
        carries no progress beyond that of ``wire``.
        """
        begin = result.next_begin_offset
        if len(result.messages) % wire.max_msg_nums or begin >= result.max_offset:
            return None
        consumer, queue = self._consumer, request.message_queue
        wire = wire._replace(
            queue_offset=begin, suspend_timeout_ms=0, commit=None, pulls=pulls, fields=None
        )
        answers: list[PullResult | Exception] = []
        try:
            consumer.instance.routes.broker(queue.broker_name).pull_async(wire, answers.append)
            if not selects_alike(subscription, consumer.announced(queue.topic)):
                return None  # it was changed meanwhile
            for answer in answers:
                if isinstance(answer, PullResult) and answer.pull_status is PullStatus.FOUND:
                    hooks = consumer.filter_message_hooks
                    found = messages_of(answer, subscription, consumer.group, queue, hooks)
                    return (answer, tuple(found)) if found else None
        except (*UNANSWERED, ClientError, BrokerError) as error:
            logger.debug("a queue is not pulled further: %s: %s", request, error)
        except (Exception, SystemExit):
            logger.exception("a queue could not be pulled further: %s", request)
        return None
