"""The receiving side: reads queues as a pull consumer without a group, and what it measured."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from broker.api.pull import PullRequest, PullResult
from storage.format.errors import BodyError

from .bodies import due_of
from .histogram import Histogram

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.format.message import MessageExt

_READER: Final = "TOOLS_CONSUMER"
"""The group of tools, which every store has. Nothing is committed for it."""
_WAIT_MS: Final = 50
"""Longest wait for a message before the end is checked again."""


class Received:
    """What was read."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.unreadable = 0
        """Messages that could not be read, or unpacked."""
        self.end_to_end = Histogram()
        """From when a message was due to when a reader had it."""
        self.begun: int | None = None
        """When the first message was read, in ns of the monotonic clock."""
        self.ended = 0


class Reading:
    """Reads queues of one topic from given offsets on. No group is involved, so no progress of a
    group moves."""

    def __init__(
        self,
        broker: "EmbeddedBroker",
        topic: str,
        offsets: Mapping[int, int],
        pull: int,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """``pull``: most messages of one pull."""
        self.broker = broker
        self._topic = topic
        self.offsets = dict(offsets)
        """The next offset of each queue."""
        self._pull = pull
        self._clock = clock
        self.received = Received()

    def step(self, most: int | None = None, *, latencies: bool = True) -> bool:
        """Read what is there, one pull a queue; returns whether there was something, readable or
        not."""
        received, found, has_moved = self.received, 0, False
        for queue_id, offset in self.offsets.items():
            room = self._pull if most is None else min(self._pull, most - found)
            if room <= 0:
                break
            begun = self._clock()
            result = self.broker.pull(PullRequest(_READER, self._topic, queue_id, offset, room))
            arrived = self._clock()
            messages, sizes = _readable(result.messages)
            if result.next_begin_offset > offset:
                has_moved = True
                self.offsets[queue_id] = result.next_begin_offset
                received.unreadable += len(result.messages) - len(messages)
                received.unreadable += self._unreadable(queue_id, offset, result)
            if not messages:
                continue
            if received.begun is None:
                received.begun = begun
            found += len(messages)
            received.bytes += sum(sizes)
            if latencies:
                for message in messages:
                    due = due_of(message)
                    if due is not None and due <= arrived:
                        received.end_to_end.record(arrived - due)
            received.ended = arrived
        received.messages += found
        return has_moved

    def _unreadable(self, queue_id: int, offset: int, result: PullResult) -> int:
        """How many messages a pull from ``offset`` has left out."""
        end = result.next_begin_offset
        absent = end - offset - len(result.messages)
        if not absent or offset < result.min_offset:
            return 0
        from storage.read.replaced import places_without_message

        on_purpose = places_without_message(self.broker.view, self._topic, queue_id, offset, end)
        return max(0, absent - on_purpose)

    def follow(self, ended: Callable[[], bool]) -> None:
        """Read, and wait for more, until ``ended`` is true and there is nothing left."""
        broker = self.broker
        while True:
            known = broker.wait_for_messages(None, 0)
            last = ended()
            if self.step():
                continue
            if last:
                return
            broker.wait_for_messages(known, _WAIT_MS, self._topic)


def _readable(messages: "Sequence[MessageExt]") -> "tuple[Sequence[MessageExt], list[int]]":
    """The messages whose bodies can be unpacked, and the sizes of these."""
    try:
        return messages, [len(message.body) for message in messages]
    except BodyError:
        from client.listener.unreadable_bodies import unreadable

        readable = [message for message in messages if not unreadable(message)]
        return readable, [len(message.body) for message in readable]
