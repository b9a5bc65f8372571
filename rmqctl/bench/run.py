"""One run of ``bench``: the load beside its progress, and the result."""

import gc
import importlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rmqctl.cli.context import Cli
from rmqctl.errors import PartlyDone
from rmqctl.output.last_line import LAST_LINE
from rmqctl.produce.run import ENDED_EARLY
from storage.counted import counted

from .load import Load, Measured, Plan
from .reading import Reading, Received
from .rows import BenchResult, percentiles, rate_of

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .reader_process import ReaderProcess


def send(
    cli: Cli,
    broker: "EmbeddedBroker",
    plan: Plan,
    reader: "ReaderProcess | None",
    pull: int | None,
) -> None:
    """Send a plan's messages, while ``reader`` reads them, and print the result.

    PartlyDone if an error ended the load. Ctrl-C, SIGTERM and a time limit end it early.
    """
    if reader is not None:
        reader.begin()
    importlib.import_module("numpy")  # the histograms use it; importing it delays all threads
    gc.collect()
    gc.freeze()  # a collection of all objects would delay a send
    load = Load(broker, plan)
    try:
        load.start()
        _wait(cli, load)
    except ENDED_EARLY:
        load.stop()
        while not load.wait(1):
            pass
        _finish(cli, broker, plan, load, reader, pull)
        LAST_LINE.print(
            f"ended early: {counted(load.messages, 'message')} stored in {plan.topic}, "
            "0 failed, 0 unknown",
            level="warning",
        )
        raise
    finally:
        load.stop()
        gc.unfreeze()
    _finish(cli, broker, plan, load, reader, pull)
    if load.error is not None:
        stored = counted(load.messages, "message was", "messages were")
        raise PartlyDone(f"{load.error}; before it {stored} stored")


def receive(
    cli: Cli,
    broker: "EmbeddedBroker",
    topic: str,
    pull: int,
    count: int | None,
    duration_ms: int | None,
    *,
    follow: bool,
) -> None:
    """Read a topic to its end, or new messages for a time, and print the result."""
    reading = _reading(broker, topic, pull, ends=follow)
    received = reading.received
    lines = _Lines(cli)
    end = None if duration_ms is None else time.monotonic() + duration_ms / 1000

    def over() -> bool:
        lines.show(received.messages, "received")
        late = end is not None and time.monotonic() >= end
        return late or (count is not None and received.messages >= count)

    try:
        while not over():
            known = broker.wait_for_messages(None, 0) if follow else 0
            left = None if count is None else count - received.messages
            if reading.step(left, latencies=follow):
                continue
            if not follow:
                break
            broker.wait_for_messages(known, 50, topic)
    except ENDED_EARLY:
        lines.end()
        _print(cli, _result(broker, topic)._replace(pull=pull), received)
        raise
    lines.end()
    _print(cli, _result(broker, topic)._replace(pull=pull), received)


def at_the_ends(root: Path, topic: str, pull: int) -> Reading:
    """A reader of the messages that are stored from now on.

    It opens the store as a member of a group does, so that it is woken: a process that only reads
    polls.
    """
    from broker.embedded.broker import EmbeddedBroker

    broker = EmbeddedBroker.open(root)
    reading = _reading(broker, topic, pull, ends=True)
    broker.wait_for_messages(broker.wait_for_messages(None, 0), 1)  # registers for being woken
    return reading


def _reading(broker: "EmbeddedBroker", topic: str, pull: int, *, ends: bool) -> Reading:
    config = broker.topic(topic)
    bound = broker.max_offset if ends else broker.min_offset
    queues = range(config.read_queue_nums if config else 0)
    return Reading(broker, topic, {queue_id: bound(topic, queue_id) for queue_id in queues}, pull)


class _Lines:
    """A line each second on stderr, in the style of ``--progress``."""

    def __init__(self, cli: Cli) -> None:
        import sys

        style = cli.progress_style()
        if style == "auto":
            style = "bar" if sys.stderr.isatty() and not cli.flag("quiet") else "none"
        self._style = style
        self._next = time.monotonic() + 1
        self._second = 0
        self._before = 0

    @property
    def left_s(self) -> float:
        """Seconds until the next line."""
        return max(0.0, self._next - time.monotonic())

    def show(self, messages: int, what: str) -> None:
        """Show the messages of the last second, if it is over."""
        if self.left_s:
            return
        self._next += 1
        self._second += 1
        now = counted(messages - self._before, "message")
        text = f"{self._second}s: {now} {what}, {messages:,} in all"
        self._before = messages
        if self._style == "bar":
            LAST_LINE.show(text)
        elif self._style == "plain":
            LAST_LINE.print(text)

    def end(self) -> None:
        """Clear the line."""
        LAST_LINE.clear()


def _wait(cli: Cli, load: Load) -> None:
    """Wait for the end of the load; print its progress."""
    lines = _Lines(cli)
    try:
        while not load.wait(lines.left_s):
            lines.show(load.messages, "sent")
    finally:
        lines.end()


def _finish(
    cli: Cli,
    broker: "EmbeddedBroker",
    plan: Plan,
    load: Load,
    reader: "ReaderProcess | None",
    pull: int | None,
) -> None:
    received = None if reader is None else reader.finish()
    measured = load.measured()
    result = _result(broker, plan.topic)._replace(
        flush=broker.view.config.flush_disk_type.value,
        threads=plan.threads,
        batch=plan.batch,
        pull=pull,
        target_rate=plan.rate,
        sent=measured.messages,
        sent_bytes=measured.bytes,
        send_rate=rate_of(measured.messages, measured.begun, measured.ended),
        rate_error=rate_error(plan, measured, load.stopped_ns),
        missed=load.missed(measured),
        not_flushed=measured.not_flushed,
        pacing_us=percentiles(measured.pacing),
        ack_us=percentiles(measured.ack),
    )
    _print(cli, result, received)


def rate_error(plan: Plan, measured: Measured, stopped_ns: int | None = None) -> float | None:
    """The largest relative difference to the rate in a whole second, up to where the load was
    stopped; None if there is no whole one, and for less than one send a second."""
    if plan.rate is None or plan.rate < plan.batch or not measured.seconds:
        return None
    if stopped_ns is not None:
        whole = stopped_ns // 1_000_000_000
    elif plan.most is not None or plan.duration_ns is None:
        whole = max(measured.seconds)
    else:
        whole = plan.duration_ns // 1_000_000_000
    if not whole:
        return None
    worst = max(abs(measured.seconds.get(second, 0) - plan.rate) for second in range(whole))
    return round(worst / plan.rate, 5)


def _print(cli: Cli, result: BenchResult, received: Received | None) -> None:
    """Print the result, with what was received if there was a reader."""
    if received is None:
        cli.one(result)
        return
    cli.one(
        result._replace(
            received=received.messages,
            received_bytes=received.bytes,
            receive_rate=rate_of(received.messages, received.begun, received.ended),
            end_to_end_us=percentiles(received.end_to_end),
        )
    )
    if received.unreadable:
        cli.left_out(
            f"{counted(received.unreadable, 'message')} could not be read; 'rmqctl store fsck' "
            "shows why"
        )


def _result(broker: "EmbeddedBroker", topic: str) -> BenchResult:
    config = broker.topic(topic)
    queues = config.write_queue_nums if config else 0
    return BenchResult(topic, queues, **dict.fromkeys(BenchResult._fields[2:]))
