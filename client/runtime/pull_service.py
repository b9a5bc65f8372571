"""The one thread that pulls for all consumers of a client instance (PullMessageService of 4.9).

It never waits for a broker: the broker holds a pull without an answer yet, and its thread brings
the answer. The thread sleeps in its queue while there is nothing to pull. Before it sleeps, it
calls ``hand_over`` of the consumers, because their messages may wait for more.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from client.starting import start_among

from .stats import stats_key

if TYPE_CHECKING:
    from client.listener.process_queue import ProcessQueue
    from client.timing import Action, Scheduler
    from storage.format.message import MessageQueue

logger = logging.getLogger("rmqctl.client.pull")
_SHUTDOWN_WAIT_S: Final = 0.5


class PullRequest:
    """The token of one queue: its holder may pull the queue next.

    The same object circulates until its process queue is dropped. ``previously_locked`` is for
    orderly consumption: the first pull under the broker's lock reads the offset anew. Its pulls are
    counted under ``stats_key``.
    """

    __slots__ = (
        "consumer_group",
        "message_queue",
        "next_offset",
        "previously_locked",
        "process_queue",
        "stats_key",
    )

    def __init__(
        self,
        consumer_group: str,
        message_queue: MessageQueue,
        process_queue: ProcessQueue,
        next_offset: int,
    ) -> None:
        self.consumer_group = consumer_group
        self.message_queue = message_queue
        self.process_queue = process_queue
        self.next_offset = next_offset
        self.previously_locked = False
        self.stats_key = stats_key(consumer_group, message_queue.topic)

    def __repr__(self) -> str:
        return f"PullRequest({self.consumer_group}, {self.message_queue}, {self.next_offset})"


class Pulling(Protocol):
    """A consumer that pulls when the service calls it."""

    def pull_message(self, request: PullRequest) -> None:
        """Pull a queue, without blocking; the request comes back to the service in the end."""
        ...

    def hand_over(self) -> None:
        """Consume what was pulled so far: the service has nothing more to pull now."""
        ...


class PullService:
    """Takes pull requests from a queue and calls their consumers. Safe for threads."""

    def __init__(
        self, name: str, select_consumer: Callable[[str], Pulling | None], scheduler: Scheduler
    ) -> None:
        """Pull for the consumers of the groups that ``select_consumer`` finds."""
        self._name = name
        self._select_consumer = select_consumer
        self._scheduler = scheduler
        self._requests: queue.SimpleQueue[PullRequest | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._threads: list[threading.Thread] = []  # one at most
        self._pulled: set[Pulling] = set()  # consumers called since the last pause
        self._stopped = False
        self._ident = -1  # of the thread, once it runs

    def execute_pull_request_immediately(self, request: PullRequest) -> None:
        """Put a request at the end of the queue."""
        self._requests.put(request)

    def execute_pull_request_later(self, request: PullRequest, delay_ms: int) -> None:
        """Put a request into the queue after a while."""
        self._scheduler.call_later(delay_ms, lambda: self._requests.put(request))

    def execute_task_later(self, task: Action, delay_ms: int) -> None:
        """Run something on the service's timer thread."""
        self._scheduler.call_later(delay_ms, task)

    @property
    def is_pulling(self) -> bool:
        """Whether the calling thread is the service's, which calls consumers' ``hand_over``."""
        return threading.get_ident() == self._ident

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return self._requests.qsize()

    def run_once(self) -> bool:
        """Take one request, without waiting; False if there was none. The thread does the same."""
        try:
            request = self._requests.get_nowait()
        except queue.Empty:
            return False
        if request is not None:
            self._pull(request)
        return request is not None

    def start(self) -> None:
        """Start the thread. Twice is fine, and after RuntimeError: the system gave no thread."""
        with self._starting:
            if not self._threads:
                start_among(self._threads, self._starting, self._run, self._name)

    def shutdown(self) -> None:
        """Stop pulling. Calling twice is fine; may be called from the thread itself."""
        self._stopped = True
        self._scheduler.shutdown()
        self._requests.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_SHUTDOWN_WAIT_S)

    def _run(self) -> None:
        self._ident = threading.get_ident()
        while not self._stopped:
            if self._requests.empty():
                self._hand_over()
            request = self._requests.get()
            if request is None:
                return
            self._pull(request)

    def _hand_over(self) -> None:
        for consumer in self._pulled:
            try:
                consumer.hand_over()
            except (Exception, SystemExit):
                logger.exception("what was pulled cannot be handed over")
        self._pulled.clear()

    def _pull(self, request: PullRequest) -> None:
        consumer = self._select_consumer(request.consumer_group)
        if consumer is None:
            logger.info("no consumer of the group, pull request is dropped: %s", request)
            return
        self._pulled.add(consumer)
        try:
            consumer.pull_message(request)
        except (Exception, SystemExit):
            logger.exception("a pull failed: request=%s", request)
