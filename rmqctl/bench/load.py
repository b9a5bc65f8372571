"""The sending side: threads that send at an even rate, and what they measured."""

import threading
import time
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.send import SendStatus

from .bodies import DUE_PROPERTY, Maker
from .histogram import Histogram
from .schedule import Schedule

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_HEAD_START_NS: Final = 20_000_000
"""The threads are running when the first message is due."""
_SECOND_NS: Final = 1_000_000_000
_NEVER: Final = 1 << 62
_TOGETHER: Final = 4096
"""Times that are put into a histogram together."""
_NUMBERS_A_THREAD: Final = 10**12
"""The counters of a template's messages differ by this between threads."""


class Plan(NamedTuple):
    """What to send."""

    topic: str
    bodies: Maker
    by_property: bool
    """Whether the time when a message is due goes into a property, not the body."""
    rate: float | None
    """Messages per second of all threads together; None is as fast as possible."""
    batch: int
    threads: int
    warm_up_ns: int
    duration_ns: int | None
    """How long to measure; None without limit."""
    most: int | None
    """How many messages to measure; None without limit."""


class Measured:
    """What one thread, or all of them, measured."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.not_flushed = 0
        self.warm_up_messages = 0
        self.pacing = Histogram()
        """From when a send could begin to when it began: it was due, and the thread had no other
        one to finish."""
        self.ack = Histogram()
        """From when a message was due to its acknowledgement."""
        self.seconds: dict[int, int] = {}
        """Messages whose send began in each second of the measurement."""
        self.begun: int | None = None
        """When the first measured send was due, in ns."""
        self.ended = 0
        """When the last measured message was acknowledged."""

    def fold(self, pacing: "array[int]", acks: "array[int]", batch: int) -> None:
        """Put times into the histograms, and empty the arrays."""
        self.pacing.record_all(pacing)
        self.ack.record_all(acks, batch)
        del pacing[:], acks[:]

    def add(self, other: "Measured") -> None:
        """Add what another thread measured."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.not_flushed += other.not_flushed
        self.warm_up_messages += other.warm_up_messages
        self.pacing.add(other.pacing)
        self.ack.add(other.ack)
        for second, messages in other.seconds.items():
            self.seconds[second] = self.seconds.get(second, 0) + messages
        begun = [at for at in (self.begun, other.begun) if at is not None]
        self.begun = min(begun, default=None)
        self.ended = max(self.ended, other.ended)


class Load:
    """Sends a plan's messages: :meth:`start`, then :meth:`wait`."""

    def __init__(
        self,
        broker: "EmbeddedBroker",
        plan: Plan,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._broker = broker
        self._plan = plan
        self._clock = clock
        self._stop = False
        self._error: Exception | None = None
        self._lock = threading.Lock()  # guards _error and _running
        self._running = plan.threads
        self._ended = threading.Event()
        self._parts = [Measured() for _ in range(plan.threads)]
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"bench-{number}", daemon=True)
            for number in range(plan.threads)
        ]
        self.begin = 0
        """When the measurement begins, after the warm-up."""

    def start(self) -> None:
        """Start the threads."""
        start = self._clock() + _HEAD_START_NS
        plan = self._plan
        ticks = None if plan.rate is None else plan.rate / plan.batch
        self._schedule = Schedule(start, ticks, self._clock)
        self.begin = start + plan.warm_up_ns
        self._end = _NEVER if plan.duration_ns is None else self.begin + plan.duration_ns
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so long; returns whether the load has ended."""
        # A join that a signal interrupts takes the thread for ended (Python 3.11).
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """End early: each thread finishes the send that it is in."""
        self._stop = True

    @property
    def error(self) -> Exception | None:
        """The error that ended the load; None if there was none."""
        return self._error

    def measured(self) -> Measured:
        """What was measured so far; exact once all threads have ended."""
        total = Measured()
        for part in self._parts:
            total.add(part)
        return total

    @property
    def messages(self) -> int:
        """Messages that were stored so far, in the warm-up too."""
        return sum(part.messages + part.warm_up_messages for part in self._parts)

    def missed(self, measured: Measured) -> int:
        """Messages that were due within the duration and were not sent: the load could not keep
        up with the rate."""
        plan = self._plan
        if plan.rate is None or plan.duration_ns is None or plan.most is not None:
            return 0
        return max(0, round(plan.rate * plan.duration_ns / 1e9) - measured.messages)

    def _run(self, number: int) -> None:
        try:
            self._send_all(number, self._parts[number])
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            with self._lock:
                self._error = self._error or error
            self._stop = True
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._ended.set()

    def _send_all(self, number: int, measured: Measured) -> None:
        """Send one thread's share.

        The loop does little beside the send, and keeps plain numbers: they are put into the
        histograms a few thousand at a time.
        """
        plan, schedule, clock = self._plan, self._schedule, self._clock
        send, make, topic = self._broker.send_column, plan.bodies, plan.topic
        paced, by_property = plan.rate is not None, plan.by_property
        begin, end, batch = self.begin, self._end, plan.batch
        threads, tick = plan.threads, number
        share = _NEVER if plan.most is None else _share(plan.most, threads, number)
        pacing, acks = array("q"), array("q")
        note_pacing, note_ack = pacing.append, acks.append
        properties: dict[str, str] | None = None
        next_number = number * _NUMBERS_A_THREAD + 1
        ok = SendStatus.SEND_OK
        warming, form = True, b"W%019d"
        second = boundary = messages = sent_before = 0
        size, fold_at = min(batch, share), _fold_at(0, batch, share)
        free = schedule.wait(schedule.start, self._stopped)
        try:
            while size:
                if paced:
                    due = schedule.due(tick)
                    tick += threads
                    now = schedule.wait(due, self._stopped)
                else:
                    due = now = free
                if self._stop:
                    return
                if now >= boundary:  # the end, the end of the warm-up, or a new second
                    if now >= end:
                        return
                    if now < begin:
                        boundary = begin
                    else:
                        if warming:
                            warming, form, measured.begun = False, b"M%019d", due
                        else:
                            measured.seconds[second] = messages - sent_before
                        sent_before = messages
                        second = (now - begin) // _SECOND_NS
                        boundary = min(end, begin + (second + 1) * _SECOND_NS)
                stamp = form % due
                if by_property:
                    properties = {DUE_PROPERTY: stamp.decode()}
                bodies = make(next_number, size, stamp)
                next_number += size
                if paced:
                    now = clock()
                result = send(topic, bodies, properties=properties)
                done = clock()
                if warming:
                    measured.warm_up_messages += size
                    free = done
                    continue
                note_ack(done - due)
                if paced:
                    note_pacing(now - max(due, free))
                free = done
                measured.messages = messages = messages + size
                if by_property:
                    measured.bytes += sum(map(len, bodies))
                if result[0] is not ok:  # its send_status
                    measured.not_flushed += size
                if messages >= fold_at:
                    if size != batch:  # the last ones
                        measured.ack.record(acks.pop(), size)
                    measured.fold(pacing, acks, batch)
                    size = min(batch, share - messages)
                    fold_at = _fold_at(messages, batch, share)
        finally:
            measured.fold(pacing, acks, batch)
            measured.ended = free
            if not warming:
                measured.seconds[second] = messages - sent_before
            if not by_property:
                measured.bytes = messages * len(make(1, 1, form % 0)[0])

    def _stopped(self) -> bool:
        return self._stop


def _fold_at(messages: int, batch: int, share: int) -> int:
    """After how many messages the times are put into the histograms next: at the latest after the
    last whole batch, and after the rest of the share."""
    whole = share - share % batch
    return min(messages + _TOGETHER * batch, whole) if messages < whole else share


def _share(most: int, threads: int, number: int) -> int:
    """How many of the messages a thread sends."""
    return most // threads + (number < most % threads)
