"""The sending side: threads that send at an even rate, and what they measured."""

import threading
import time
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.send import SendStatus

from .bodies import DUE_PROPERTY, MEASURED, WARM_UP, Maker
from .histogram import Histogram
from .schedule import Schedule

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_HEAD_START_NS: Final = 20_000_000
"""The threads are running when the first message is due."""
_SECOND_NS: Final = 1_000_000_000
_NEVER: Final = 1 << 62
_LONGEST_BURST_NS: Final = 100_000_000
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

    def count(self, messages: int, size: int, due: int, done: int, second: int) -> None:
        """Count stored messages and their bytes."""
        if self.begun is None:
            self.begun = due
        self.ended = done
        self.messages += messages
        self.bytes += size
        self.seconds[second] = self.seconds.get(second, 0) + messages

    def fold(self, pacing: "array[int]", acks: "array[int]", batch: int) -> None:
        """Put times of sends of so many messages each into the histograms, and empty the arrays."""
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
        self._stopped_at: int | None = None
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
        """End early: each thread finishes the send that it is in. Nothing if it has ended."""
        if not self._stop and not self._ended.is_set():
            self._stopped_at = self._clock()
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

    @property
    def stopped_ns(self) -> int | None:
        """How long was measured until an error or :meth:`stop` ended the load early; else None."""
        if self._stopped_at is None:
            return None
        return max(0, min(self._stopped_at, self._end) - self.begin)

    def missed(self, measured: Measured) -> int:
        """Messages that were due until the load ended, early or not, and were not sent: it could
        not keep up with the rate."""
        plan, stopped_at = self._plan, self._stopped_at
        if plan.rate is None:
            return 0
        if stopped_at is not None and stopped_at < self._end:
            # The sends of which all messages were due: the next one was, too.
            last = self._schedule.ticks_before(stopped_at + 1) - 1
        elif plan.duration_ns is None:
            return 0  # it ended with its last message
        else:
            last = self._schedule.ticks_before(self._end)
        due = max(0, last - self._schedule.ticks_before(self.begin)) * plan.batch
        if plan.most is not None:
            due = min(due, plan.most)
        return max(0, due - measured.messages)

    def _run(self, number: int) -> None:
        try:
            send = self._send_unpaced if self._plan.rate is None else self._send_paced
            send(number, self._parts[number])
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            with self._lock:
                self._error = self._error or error
            self.stop()
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._ended.set()

    def _send_paced(self, number: int, measured: Measured) -> None:
        """Send one thread's share at the rate."""
        plan, schedule, clock = self._plan, self._schedule, self._clock
        send, make, topic = self._broker.send_column, plan.bodies, plan.topic
        begin, end, batch, tick = self.begin, self._end, plan.batch, number
        share = _share(plan.most, plan.threads, number)
        pacing, acks = array("q"), array("q")
        properties: dict[str, str] | None = None
        next_number = number * _NUMBERS_A_THREAD + 1
        free, weight = 0, batch
        try:
            while share:
                due = schedule.due(tick)
                tick += plan.threads
                if due >= end or schedule.wait(due, self._stopped) >= end or self._stop:
                    break
                counts = clock() >= begin
                size = min(batch, share)
                stamp = (MEASURED if counts else WARM_UP) % due
                if plan.by_property:
                    properties = {DUE_PROPERTY: stamp.decode()}
                bodies = make(next_number, size, stamp)
                next_number += size
                sent = clock()
                result = send(topic, bodies, properties=properties)
                done = clock()
                if counts:
                    second = (sent - begin) // _SECOND_NS
                    measured.count(size, sum(map(len, bodies)), due, done, second)
                    if result.send_status is not SendStatus.SEND_OK:
                        measured.not_flushed += size
                    share -= size
                    if size != weight or len(acks) >= _TOGETHER:
                        measured.fold(pacing, acks, weight)
                        weight = size
                    pacing.append(sent - max(due, free))
                    acks.append(done - due)
                else:
                    measured.warm_up_messages += size
                free = done
        finally:
            measured.fold(pacing, acks, weight)

    def _send_unpaced(self, number: int, measured: Measured) -> None:
        """Send one thread's share as fast as possible."""
        plan, begin = self._plan, self.begin
        share = _share(plan.most, plan.threads, number)
        next_number = number * _NUMBERS_A_THREAD + 1
        now = self._schedule.wait(self._schedule.start, self._stopped)
        while share and now < self._end and not self._stop:
            second = (now - begin) // _SECOND_NS
            counts = second >= 0
            until = min(begin + (second + 1) * _SECOND_NS, self._end, now + _LONGEST_BURST_NS)
            size = min(plan.batch, share)
            burst = _Burst(MEASURED if counts else WARM_UP, size, now, until if counts else begin)
            try:
                burst.send(
                    self._broker, plan, self._clock, next_number, min(_TOGETHER, share // size)
                )
            finally:
                ended = burst.ended
                sent = len(burst.acks) * size
                if not counts:
                    measured.warm_up_messages += sent
                elif sent:
                    share -= sent
                    measured.count(sent, burst.bytes, now, ended, second)
                    measured.not_flushed += burst.not_flushed
                    measured.ack.record_all(burst.acks, size)
            next_number += sent
            now = ended

    def _stopped(self) -> bool:
        return self._stop


def _share(most: int | None, threads: int, number: int) -> int:
    """How many of the messages a thread sends."""
    return _NEVER if most is None else most // threads + (number < most % threads)


class _Burst:
    """Some sends, one directly after the other."""

    def __init__(self, form: bytes, size: int, begun: int, until: int) -> None:
        """``form`` of the stamps, ``size`` messages a send; no send begins from ``until`` on."""
        self.acks = array("q")
        self.bytes = 0
        self.not_flushed = 0
        self.ended = begun
        """When the last send was acknowledged."""
        self._form = form
        self._size = size
        self._begun = begun
        self._until = until

    def send(
        self,
        broker: "EmbeddedBroker",
        plan: Plan,
        clock: Callable[[], int],
        first: int,
        most: int,
    ) -> None:
        """Send at most ``most`` times. The loop does little beside: what it takes is measured, too
        (benchmarks.measures.load)."""
        send, make, topic, by_property = (
            broker.send_column,
            plan.bodies,
            plan.topic,
            plan.by_property,
        )
        form, size, until, note = self._form, self._size, self._until, self.acks.append
        ok, now = SendStatus.SEND_OK, self._begun
        try:
            for number in range(first, first + most * size, size):
                due = now
                bodies = make(number, size, form % due)
                if by_property:
                    named = {DUE_PROPERTY: (form % due).decode()}
                    result = send(topic, bodies, properties=named)
                    self.bytes += sum(map(len, bodies))
                else:
                    result = send(topic, bodies)
                now = clock()
                note(now - due)
                if result[0] is not ok:  # its send_status
                    self.not_flushed += size
                if now >= until:
                    break
        finally:
            self.ended = now
            if not by_property:
                self.bytes = len(self.acks) * size * len(make(1, 1, form % 0)[0])
