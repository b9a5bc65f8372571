"""A process of ours that keeps producing through an EmbeddedBroker until it is stopped or killed.

It sends single messages, batches and columns in turn, commits the progress of a group after each,
and only then says on standard output how many of its messages are acknowledged.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.format.message import Message

QUEUES = 4
"""Queues of each producer's topic."""
_WAIT_SECONDS = 30.0
_PAUSE = 0.01  # between two puts, so that a test that takes long does not write gigabytes
_BATCH = 5
LARGEST_PUT = 60
"""Most messages that are stored and not yet acknowledged."""


def body_of(name: str, number: int) -> bytes:
    """Give the body of one producer's message; `key_of` finds it."""
    return f"{name} says {number} \U0001f680 ".encode() * (number % 7 + 1)


def key_of(name: str, number: int) -> str:
    """Give the key that message alone has."""
    return f"{name}-{number}"


def group_of(name: str) -> str:
    """Give the group whose progress in queue 0 is the number of acknowledged messages."""
    return f"g-{name}"


class OurProducer:
    """The process, seen from the one that started it."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.name = name
        self._process = process
        self._acknowledged = 0
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def acknowledged(self) -> int:
        """Messages 0, 1, ... below this number are stored."""
        with self._news:
            return self._acknowledged

    def wait_for(self, acknowledged: int) -> None:
        """Wait until so many messages are acknowledged."""
        with self._news:
            done = self._news.wait_for(
                lambda: self._acknowledged >= acknowledged or self._ended, _WAIT_SECONDS
            )
            assert done, f"{self.name}: {self._acknowledged} messages in {_WAIT_SECONDS} s"
            assert not self._ended, f"{self.name} ended by itself"

    def stop(self) -> int:
        """Have it close its store and end; gives how many messages it had acknowledged."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(_WAIT_SECONDS)
        self._reader.join(_WAIT_SECONDS)
        assert code == 0, f"{self.name} ended with {code}"
        return self.acknowledged

    def kill(self) -> int:
        """End it by SIGKILL; gives how many messages it had acknowledged."""
        self._process.kill()
        self._process.wait(_WAIT_SECONDS)
        self._reader.join(_WAIT_SECONDS)
        return self.acknowledged

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._acknowledged = int(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


@contextmanager
def producing(root: Path, name: str, *, first: int = 0) -> Iterator[OurProducer]:
    """Start a producer on a store with message `first`; killed at the end if it still runs."""
    command = [sys.executable, "-m", "tests.interop.our_producer", str(root), name, str(first)]
    with subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        producer = OurProducer(process, name)
        try:
            yield producer
        finally:
            producer.kill()


def _messages(name: str, first: int, count: int) -> list[Message]:
    return [
        Message(name, body_of(name, n), keys=key_of(name, n), tags=f"tag{n % 3}")
        for n in range(first, first + count)
    ]


def _produce(root: Path, name: str, sent: int, stopped: threading.Event) -> None:
    with EmbeddedBroker.open(root) as broker:
        for turn in itertools.count():
            if stopped.wait(_PAUSE):
                break
            queue_id = turn % QUEUES
            if turn % 3 == 0:
                [message] = _messages(name, sent, 1)
                broker.send(message, queue_id)
                sent += 1
            elif turn % 3 == 1:
                broker.send_batch(_messages(name, sent, _BATCH), queue_id)
                sent += _BATCH
            else:
                numbers = range(sent, sent + LARGEST_PUT)
                broker.send_column(
                    name,
                    [body_of(name, n) for n in numbers],
                    keys=[key_of(name, n) for n in numbers],
                )
                sent += LARGEST_PUT
            broker.update_consumer_offsets(group_of(name), [OffsetCommit(name, 0, sent)])
            broker.tick()
            print(sent, flush=True)  # noqa: T201 - what it is for


def _main(root: str, name: str, first: str) -> None:
    stopped = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    _produce(Path(root), name, int(first), stopped)


if __name__ == "__main__":
    _main(*sys.argv[1:])
