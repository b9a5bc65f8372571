"""Pulls that found nothing yet and are held (PullRequestHoldService of 4.9).

One thread sleeps until something arrives in a topic of a held pull, or the time of a held pull is
over; it does not wake while nothing is held. It answers a held pull
* when messages came to its queue of which one may match its subscription (the unit's tag hash;
  other expressions are checked against the message itself);
* at the sweep, every 5 s, when its queue has grown at all: the new messages may not match, but the
  client's offset moves on;
* when its time is over, or a heartbeat of its client has another expression for its topic;
* when the broker closes.

A held pull is read once more then and answered with the result, never held again.

An answer may leave work that may block (``Handoff``): calling a listener. Waking a thread for it
would delay the message. So this thread does the work itself, where it belongs to one answer alone
and is expected to be quick. If it is not, another thread takes its place after 10 to 20 ms
(``Watch``).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from storage.deadlines import MAX_CLOSE_S, ends_within
from storage.format.cq_unit import MAX_EXT_ADDR

from .handoff_watchdog import Watch

if TYPE_CHECKING:
    from broker.api.pull import Handoff, PullRequest, PullResult
    from storage.read.message_filter import MessageFilter
    from storage.readonly import StoreView

    from .message_arrival import MessageArrivals

logger = logging.getLogger("rmqctl.broker")

SWEEP_MS: Final = 5_000
"""How often held pulls are swept whatever their subscription (PullRequestHoldService)."""
SHORT_SWEEP_MS: Final = 1_000
"""The same without long polling."""
AFTER_FAILURE_S: Final = 1.0
_ANSWERS_S: Final = 0.1
"""At closing another thread answers the rest if one answer takes longer than this."""
IN_A_FLOW_MS: Final = 100
"""For how long after a message the next one is soon expected."""
LOOK_IN_A_FLOW_MS: Final = 5
"""How often the thread polls meanwhile: a processor that slept for 20 ms is slow to wake, and slow
in all that it does next. That costs some 2 % of a core with a few queues."""
_FEW_QUEUES: Final = 32  # that the thread may poll so often
_UNITS_AT_ONCE: Final = 1_000

Answer = Callable[["PullResult | Exception"], "Handoff | None"]


class HeldPull:
    """One pull that waits. ``deadline`` in ms of the monotonic clock; ``observed`` is the queue
    offset below which nothing matches."""

    __slots__ = ("answer", "deadline", "observed", "request", "tags")

    def __init__(
        self, request: PullRequest, tags: MessageFilter | None, answer: Answer, deadline: int
    ) -> None:
        self.request = request
        self.tags = tags
        self.answer = answer
        self.deadline = deadline
        self.observed = request.queue_offset


class HeldPulls:
    """The table of held pulls and its thread. ``read`` is called in that thread.

    Without ``notified`` it sweeps them every second only (longPollingEnable = false).
    """

    def __init__(
        self,
        view: Callable[[], StoreView],
        arrivals: MessageArrivals,
        read: Callable[[PullRequest, MessageFilter | None], PullResult],
        *,
        notified: bool = True,
        monotonic_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        self._view = view
        self._arrivals = arrivals
        self._read = read
        self._notified = notified
        self._sweep_ms = SWEEP_MS if notified else SHORT_SWEEP_MS
        self._monotonic_ms = monotonic_ms
        self._lock = threading.Lock()  # guards the five fields below
        self._held: dict[tuple[str, int], list[HeldPull]] = {}
        self._looks: threading.Thread | None = None  # other threads only end their current work
        self._watch = Watch("held-pulls-watch", self._replace)
        self._closed = False
        self._sweep_due = 0
        self._flows_until = 0  # of that thread
        self._more = threading.Event()

    def hold(
        self, request: PullRequest, tags: MessageFilter | None, answer: Answer, suspend_ms: int
    ) -> None:
        """Hold a pull for at most so long; answers at once if the broker is closing."""
        now = self._monotonic_ms()
        pull = HeldPull(request, tags, answer, now + suspend_ms)
        with self._lock:
            closed = self._closed
            if not closed:
                if self._looks is None:
                    self._start_thread()
                if not self._held:
                    self._sweep_due = now + self._sweep_ms
                self._held.setdefault((request.topic, request.queue_id), []).append(pull)
        if closed:
            leave(self._answer(pull))
            return
        self._more.set()
        self._arrivals.wake()

    def answer_soon(self, which: Callable[[PullRequest], bool]) -> None:
        """Have held pulls answered at once whose request passes the test."""
        found = False
        with self._lock:
            for pulls in self._held.values():
                for pull in pulls:
                    if which(pull.request):
                        pull.deadline = 0
                        found = True
        if found:
            self._more.set()
            self._arrivals.wake()

    @property
    def count(self) -> int:
        """How many pulls are held."""
        with self._lock:
            return sum(map(len, self._held.values()))

    def notify(self) -> Handoff | None:
        """Answer pulls for which a message may have come (notifyMessageArriving).

        Gives the work that the last one leaves.
        """
        rest: Handoff | None = None
        came = False
        view = self._view()
        end_of = view.bounds.next_offset
        with self._lock:
            held = list(self._held)
        try:
            for queue in held:
                end = end_of(*queue)
                for pull in tuple(self._held.get(queue, ())):  # in one step: no lock is needed
                    if end > pull.observed and self._may_match(view, queue, pull, end):
                        if rest is not None:
                            last, rest = rest, None
                            last.leave()  # it does not wait for the others
                        rest = self._release(queue, pull)
                        came = True
        except BaseException:
            leave(rest)
            raise
        if came:
            self._flows_until = self._monotonic_ms() + IN_A_FLOW_MS
        return rest

    def sweep(self) -> None:
        """Answer pulls whose queue has grown (checkHoldRequest)."""
        view = self._view()
        for queue, pulls in self._snapshot():
            max_offset = view.max_offset_in_queue(*queue)
            for pull in pulls:
                if max_offset > pull.request.queue_offset:
                    leave(self._release(queue, pull))

    def expire(self, now: int) -> None:
        """Answer pulls whose time is over."""
        for queue, pulls in self._snapshot():
            for pull in pulls:
                if now >= pull.deadline:
                    leave(self._release(queue, pull))

    def close(self, within_s: float = MAX_CLOSE_S) -> None:
        """Answer all, and end the thread: at once, unless it runs work that may block. Calling
        twice is fine.

        A client that does not return from its answer is left to its thread after ``within_s``; the
        others are answered all the same.
        """
        end = time.monotonic() + within_s
        with self._lock:
            self._closed = True
            thread = self._looks if self._watch.work is None else None
        self._watch.close()
        self._more.set()
        self._arrivals.wake()
        if thread is not None and thread is not threading.current_thread():
            # Half of the time: the pulls that wait for an answer need some of it, too.
            thread.join(within_s / 2)
            if thread.is_alive():
                logger.warning(
                    "a client has not returned from the answer of a pull within %.1f s; it is left"
                    " to its thread",
                    within_s / 2,
                )
        self._answer_all(end)

    # -- inside -------------------------------------------------------------------------------

    def _answer_all(self, end: float) -> None:
        """Answer held pulls in other threads: where one blocks, the next one goes on."""
        left = deque((queue, pull) for queue, pulls in self._snapshot() for pull in pulls)

        def answer() -> None:
            while left:
                try:
                    queue, pull = left.popleft()
                except IndexError:  # another thread has it
                    return
                leave(self._release(queue, pull))

        late, in_time = 0, True
        while left and in_time:
            seconds = min(_ANSWERS_S, end - time.monotonic())
            in_time = seconds > 0  # else one thread answers them, and is not joined
            late += not ends_within(max(0.0, seconds), answer, "held-pulls-closing")
        if late:
            logger.warning(
                "%d clients have not returned from the answers of their pulls; they are left to"
                " their threads",
                late,
            )

    def _may_match(
        self, view: StoreView, queue: tuple[str, int], pull: HeldPull, max_offset: int
    ) -> bool:
        if pull.tags is None:
            return True
        while pull.observed < max_offset:
            count = min(_UNITS_AT_ONCE, max_offset - pull.observed)
            units = view.units(*queue, pull.observed, count)
            if not units:
                return True  # deleted meanwhile, or not readable: the answer shows it
            for _, _, code in units:
                if code <= MAX_EXT_ADDR or pull.tags.matches(code):
                    return True
            pull.observed += len(units)
        return False

    def _release(self, queue: tuple[str, int], pull: HeldPull) -> Handoff | None:
        with self._lock:
            pulls = self._held.get(queue, [])
            if pull not in pulls:
                return None  # answered already
            pulls.remove(pull)
            if not pulls:
                del self._held[queue]
        return self._answer(pull)

    def _answer(self, pull: HeldPull) -> Handoff | None:
        result: PullResult | Exception
        try:
            result = self._read(pull.request, pull.tags)
        except Exception as error:  # noqa: BLE001 - the client gets it
            result = error
        try:
            return pull.answer(result)
        except (Exception, SystemExit):
            logger.exception("a client could not take the answer of a pull")
            return None

    def _snapshot(self) -> list[tuple[tuple[str, int], list[HeldPull]]]:
        with self._lock:
            return [(queue, list(pulls)) for queue, pulls in self._held.items()]

    def _start_thread(self) -> None:
        """Start the thread that answers, in place of the current one; needs the lock."""
        before = self._looks
        self._looks = threading.Thread(target=self._run, name="held-pulls", daemon=True)
        try:
            self._looks.start()
        except BaseException:
            self._looks = before
            raise

    def _run(self) -> None:
        me = threading.current_thread()
        while self._looks is me and not self._closed:
            self._more.clear()
            try:
                rest = self._round_and_wait()
            except Exception:
                # The store was closed, or is not readable: held pulls get the error at expiry.
                logger.exception("held pulls could not be checked")
                self._more.wait(AFTER_FAILURE_S)
            else:
                if rest is not None:
                    self._do(rest)
                rest = None  # a sleeping thread keeps no message alive

    def _do(self, rest: Handoff) -> None:
        """Do work that may block in this thread; or leave it, if no thread could replace this
        one."""
        with self._lock:
            watched = not self._closed
            if watched:
                try:
                    self._watch.begin(rest)
                except Exception:  # noqa: BLE001 - no thread, no memory
                    watched = False
        if not watched:
            rest.leave()
            return
        try:
            rest()
        except BaseException:  # an exit, too: this thread answers other pulls
            logger.exception("a client could not act on the answer of a pull")
        finally:
            with self._lock:
                self._watch.end(rest)

    def _replace(self, rest: Handoff) -> None:
        """Let another thread answer pulls: this one is busy with its work."""
        with self._lock:
            if self._closed or self._watch.work is not rest:
                return  # it has just ended
            try:
                self._start_thread()
            except RuntimeError:
                return  # the system gives none: the watch reports again
            self._watch.end(rest)
        rest.late()

    def _round_and_wait(self) -> Handoff | None:
        """Answer pulls that can be answered, or sleep until one can; gives the work that is
        left."""
        known = self._arrivals.now()
        timeout_ms = self.round(self._monotonic_ms())
        rest = self.notify() if self._notified else None
        if rest is not None:
            return rest
        if timeout_ms is None:
            self._more.wait()
            return None
        with self._lock:
            topics = {topic for topic, _ in self._held}
            few = len(self._held) <= _FEW_QUEUES
        if self._notified and not self._arrivals.closed:
            if few and self._monotonic_ms() < self._flows_until:
                timeout_ms = min(timeout_ms, LOOK_IN_A_FLOW_MS)
            if self._arrivals.wait(known, timeout_ms, topics, self._more.is_set) != known:
                return self.notify()  # at once: a client waits for it
        else:
            self._more.wait(timeout_ms / 1000)
        return None

    def round(self, now: int) -> int | None:
        """Answer pulls whose time is over, and sweep if it is due; gives the latest time for the
        next round, in ms from ``now``, None if nothing is held."""
        self.expire(now)
        if now >= self._sweep_due:
            self._sweep_due = now + self._sweep_ms
            self.sweep()
        with self._lock:
            deadlines = [pull.deadline for pulls in self._held.values() for pull in pulls]
        if not deadlines:
            return None
        return max(0, min(*deadlines, self._sweep_due) - now)


def leave(rest: Handoff | None) -> None:
    """Leave work that may block to a thread of the client's."""
    if rest is not None:
        rest.leave()
