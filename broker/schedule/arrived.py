"""Which messages of a delay level have been delivered already, according to the log.

A process that stores a copy and then notes its offset may be killed between the two. So the next
process searches for the copies: a delivered message is the waiting record, except for its topic and
its queue. Copies of one level come into each of their queues in the order in which they waited, and
after the noted log offset (storage.configs.delivery_notes).

Without a note, as after a Java broker, the search begins where the first message was due. Copies of
earlier messages may lie there, too: then only a message with a unique id can be recognised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.message import (
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    SCHEDULE_TOPIC,
)
from storage.read.by_time import Boundary
from storage.read.gaps import unit_runs
from storage.read.log_offsets import first_at

from .message import message_timeup

if TYPE_CHECKING:
    from storage.configs.early_deliveries import Place
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_BATCH: Final = 512
_CLOCK_MS: Final = 60_000
"""A clock that was set back by more than this makes a delivery look older than its search."""

_Target = tuple[str, int]
_Content = tuple[frozenset[tuple[str, str]], bytes, int, int, int]


class Since(NamedTuple):
    """Where copies begin: at a log offset, and not before a time (ms) unless it is None."""

    log_offset: int
    time_ms: int | None
    exact: bool
    """Whether no copy of an earlier message of the level lies there."""


class Arrived(NamedTuple):
    """Where a level goes on, and which of the messages after that have been delivered."""

    offset: int
    others: frozenset[int]


class _Waiting(NamedTuple):
    offset: int
    target: _Target
    content: _Content
    size: int
    dropped: int
    """Bytes of properties that this broker does not store again, and a Java broker does."""


class DeliveredMessages:
    """Searches for copies of one level's messages. Only reads."""

    def __init__(
        self,
        view: StoreView,
        queue_id: int,
        since: Since,
        ended: Callable[[int], Collection[Place]],
    ) -> None:
        self._view = view
        self._queue_id = queue_id
        self._since = since
        self._ended = ended
        self._at: dict[_Target, int] = {}

    def after(self, offset: int) -> Arrived:
        """Check the messages from ``offset`` on, as far as some of them have been delivered."""
        view, level = self._view, (SCHEDULE_TOPIC, self._queue_id)
        first, others = offset, set[int]()
        for at, units in unit_runs(
            view, *level, offset, view.queue_bounds(*level).max_offset, _BATCH
        ):
            waiting = self._waiting(at, units)
            arrived = self._arrived(waiting)
            if waiting and not arrived:
                break
            others |= arrived
        while first in others:
            others.discard(first)
            first += 1
        return Arrived(first, frozenset(others))

    def _waiting(self, offset: int, units: bytes) -> list[_Waiting]:
        ended = self._ended(self._queue_id)
        found = []
        messages = self._view.messages_of_units(SCHEDULE_TOPIC, self._queue_id, offset, units)
        for at, message in enumerate(messages, offset):
            if message is None or (ended and (at, message.commitlog_offset) in ended):
                continue
            if not self._since.exact and not message.get_property(
                PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
            ):
                continue
            inner = message_timeup(message)
            if inner is not None:
                size = message.store_size + len(inner.topic) - len(SCHEDULE_TOPIC)
                dropped = len(message.property_bytes) - len(inner.properties)
                target = inner.topic, inner.queue_id
                found.append(_Waiting(at, target, _content(message), size - dropped, dropped))
        return found

    def _arrived(self, waiting: list[_Waiting]) -> set[int]:
        """Give the offsets of those that have been delivered."""
        targets: dict[_Target, list[_Waiting]] = {}
        for one in waiting:
            targets.setdefault(one.target, []).append(one)
        return {offset for target, wanted in targets.items() for offset in self._of(target, wanted)}

    def _of(self, target: _Target, wanted: list[_Waiting]) -> list[int]:
        """Search for copies in one queue, on from the last one that was found."""
        left = Counter(one.content for one in wanted)
        # A record of the second version becomes one of the first: a byte less for its topic. A
        # Java broker puts the properties in another order, with or without a last separator.
        sizes = {
            one.size + kept + more
            for one in wanted
            for kept in {0, one.dropped}
            for more in (-1, 0, 1)
        }
        found: Counter[_Content] = Counter()
        begin = self._at[target] if target in self._at else self._first(target)
        self._at[target] = begin
        end = self._view.queue_bounds(*target).max_offset
        for at, units in unit_runs(self._view, *target, begin, end, _BATCH):
            for offset, unit in enumerate(CQ_STORE_UNIT.iter_unpack(units), at):
                if unit[1] not in sizes or unit[0] < self._since.log_offset:
                    continue
                message = self._view.message_of_unit(*target, offset, unit)
                content = None if message is None else _content(message)
                if content is not None and content in left:
                    found[content] += 1
                    left[content] -= 1
                    if not left[content]:
                        del left[content]
                    self._at[target] = offset + 1
            if not left:
                break
        arrived = []
        for one in wanted:
            if found[one.content]:
                found[one.content] -= 1
                arrived.append(one.offset)
        return arrived

    def _first(self, target: _Target) -> int:
        """The first offset of a queue at or after the log offset where copies begin."""
        view, (log_offset, time_ms, _) = self._view, self._since
        low, high = view.queue_bounds(*target)
        if time_ms is not None and low < high:
            by_time = view.offset_in_queue_by_time(*target, time_ms, Boundary.LOWER)
            low = min(max(low, by_time), high)
        return first_at(view, *target, log_offset, low, high)


def since_due(log_offset: int, due_ms: int) -> Since:
    """Begin where a message waits, or a little before it was due."""
    return Since(log_offset, max(0, due_ms - _CLOCK_MS), exact=False)


def _content(message: MessageExt) -> _Content:
    properties = message.properties
    return (
        frozenset(
            (name, properties[name])
            for name in properties
            if name != PROPERTY_INNER_MULTI_QUEUE_OFFSET  # made anew for each record
        ),
        message.stored_body,
        message.born_timestamp,
        message.reconsume_times,
        message.flag,
    )
