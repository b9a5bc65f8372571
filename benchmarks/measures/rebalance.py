"""Time until 16 processes of a group have divided 64 queues anew after one is killed or added."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run, clear_progress, progress
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.configs.topics import TopicConfig

NAME = "rebalance"
_TOPIC = "divided"
_QUEUES = 64
_MEMBERS = 16
_LIMIT_MS = 1_000.0
_PATIENCE_S = 60.0


class _Member:
    """One process, and the queues that it last reported."""

    def __init__(self, root: Path, number: int) -> None:
        self.queues: list[int] = []
        self.changed = 0
        self._rest = b""
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.programs.group_member",
                root,
                "g",
                _TOPIC,
                f"{number:04d}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it is ready

    def begin(self) -> int:
        """Let it join; gives the time."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.read()
        return self.changed

    def read(self) -> None:
        """Read its reports, one line at least."""
        assert self.process.stdout is not None
        lines: list[bytes] = []
        while not lines:
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise NotMeasurableError("a member has failed")
            *lines, self._rest = (self._rest + chunk).split(b"\n")
        self.changed, self.queues = json.loads(lines[-1])

    def kill(self) -> int:
        """Kill it; gives the time."""
        killed = time.monotonic_ns()
        self.process.kill()
        self.close()
        return killed

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def measure(run: Run) -> Iterator[Row]:
    note = progress("rebalance")
    deaths: list[float] = []
    joins: list[float] = []
    members: list[_Member] = []
    with run.folder() as folder, ExitStack() as stack:
        stack.callback(_close_all, members)
        root = folder / "store"
        create_store(root)
        with EmbeddedBroker.open(root) as broker:
            broker.update_topic(TopicConfig(_TOPIC, _QUEUES, _QUEUES))
            for number in range(_MEMBERS):
                note(f"member {number + 1} of {_MEMBERS}")
                members.append(_Member(root, number))
                members[-1].begin()
            _until_divided(members)
            for number in range(run.rounds):
                note(f"round {number + 1} of {run.rounds}")
                victim = members.pop((number * 5) % _MEMBERS)
                killed = victim.kill()
                deaths.append((_until_divided(members) - killed) / 1e6)
                newcomer = _Member(root, _MEMBERS + number)
                members.append(newcomer)
                began = newcomer.begin()
                joins.append((_until_divided(members) - began) / 1e6)
    clear_progress()
    what = f"{_QUEUES} queues, {_MEMBERS} member processes divide them anew, one"
    for how, figures in (("is killed", deaths), ("comes", joins)):
        yield Row(
            f"{what} {how}",
            f"fastest {min(figures):.0f} ms",
            f"slowest {max(figures):.0f} ms",
            figures,
            Goal(_LIMIT_MS, at_most=True),
            "ms",
        )


def _close_all(members: list[_Member]) -> None:
    for member in members:
        member.close()


def _until_divided(members: list[_Member]) -> int:
    """Wait until each queue has one owner and the division is even; gives that time."""
    deadline = time.monotonic() + _PATIENCE_S
    with selectors.DefaultSelector() as selector:
        for member in members:
            assert member.process.stdout is not None
            selector.register(member.process.stdout.fileno(), selectors.EVENT_READ, member)
        while not _divided(members):
            if time.monotonic() > deadline:
                raise NotMeasurableError("the queues were not divided")
            for key, _ in selector.select(1):
                key.data.read()
    return max(member.changed for member in members)


def _divided(members: list[_Member]) -> bool:
    shares = [len(member.queues) for member in members]
    owned = sorted(queue for member in members for queue in member.queues)
    return owned == list(range(_QUEUES)) and max(shares) - min(shares) <= 1
