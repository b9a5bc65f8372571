"""Age of messages when a listener in another process gets them, and the cost of idling."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run, clear_progress, progress
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.configs.topics import TopicConfig
from storage.format.message import Message

NAME = "latency"
_QUEUES = 8
_PER_SECOND = 50
_BESIDE_PER_SECOND = 10_000
_BESIDE_AT_ONCE = 20
_P50_MS = 2.0
_P99_MS = 10.0
_P99_BESIDE_MS = 50.0


class _Latencies(NamedTuple):
    p50: float
    p99: float
    cpu_share: float


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(500, 150)
    idle_seconds = run.sized(10, 4)
    note = progress("latency")
    alone: list[_Latencies] = []
    beside: list[_Latencies] = []
    for number in range(run.rounds):
        note(f"round {number + 1} of {run.rounds}")
        alone.append(round_of(run, count, idle_seconds if number == 0 else 0, beside=False))
        beside.append(round_of(run, count, 0, beside=True))
    clear_progress()
    what = f"from send to a listener in another process, {_PER_SECOND} a second"
    yield _row(f"{what}, p50", alone, [one.p50 for one in alone], _P50_MS)
    yield _row(f"{what}, p99", alone, [one.p99 for one in alone], _P99_MS)
    what = f"the same beside {_BESIDE_PER_SECOND:,} a second sent and consumed, p99"
    yield _row(what, beside, [one.p99 for one in beside], _P99_BESIDE_MS)
    yield Row(
        f"CPU of a group of {_QUEUES} queues that idles",
        f"{alone[0].cpu_share * idle_seconds * 1e3:.1f} ms",
        f"{idle_seconds} s",
        [alone[0].cpu_share],
        Goal(0.01, at_most=True, percent=True),
    )


def _row(what: str, rounds: list[_Latencies], figures: list[float], limit_ms: float) -> Row:
    return Row(
        what,
        f"p50 {median(one.p50 for one in rounds):.2f} ms",
        f"p99 {median(one.p99 for one in rounds):.2f} ms",
        figures,
        Goal(limit_ms, at_most=True),
        "ms",
    )


def round_of(run: Run, count: int, idle_seconds: float, *, beside: bool) -> _Latencies:
    """Latencies of ``count`` messages from a process to another, both new, in ms."""
    with run.folder() as folder, ExitStack() as stack:
        root = folder / "store"
        create_store(root)
        with EmbeddedBroker.open(root) as broker:
            for topic in ("measured", "beside"):
                broker.update_topic(TopicConfig(topic, _QUEUES, _QUEUES))
                for queue_id in range(_QUEUES):  # beside Java, too, queues have messages already
                    broker.send(Message(topic, bytes(8), tags="untimed"), queue_id)
        traffic: _Program | None = None
        if beside:
            never = 1 << 60
            other = _Program(stack, "push_member", root, "g-beside", "beside", never, 0)
            other.wait_until_ready()
            traffic = _Program(
                stack, "paced_producer", root, "beside", _BESIDE_PER_SECOND, _BESIDE_AT_ONCE, 0
            )
            traffic.wait_until_ready()
            traffic.begin()
        member = _Program(stack, "push_member", root, "g", "measured", count, idle_seconds)
        member.wait_until_ready()
        producer = _Program(stack, "paced_producer", root, "measured", _PER_SECOND, 1, count)
        producer.wait_until_ready()
        producer.begin()
        result = json.loads(member.line())
        if traffic is not None:
            traffic.end_input()
            sent, seconds = map(float, traffic.line().split())
            if sent / seconds < 0.9 * _BESIDE_PER_SECOND:
                raise NotMeasurableError(f"only {sent / seconds:.0f} messages a second beside it")
    latencies = [nanoseconds / 1e6 for nanoseconds in result["latencies"]]
    return _Latencies(
        median(latencies),
        quantiles(latencies, n=100)[98],
        result["cpu"] / idle_seconds if idle_seconds else 0.0,
    )


class _Program:
    """A program of benchmarks.programs that is killed at the end."""

    def __init__(self, stack: ExitStack, name: str, root: Path, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.programs.{name}", root, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.enter_context(self._process)
        stack.callback(self._process.kill)

    def line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise NotMeasurableError("a process has failed")
        return line

    def wait_until_ready(self) -> None:
        self.line()

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.stdin = None
