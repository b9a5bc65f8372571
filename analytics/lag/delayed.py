"""Messages that wait in the delay topic, and a group's retries among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.configs.delay_offsets import load_delay_offsets
from storage.format.cq_unit import CQ_STORE_UNIT, MAX_EXT_ADDR
from storage.format.delay import CLOCK_STEP_MS, parse_delay_levels
from storage.format.java_numbers import parse_int
from storage.format.message import PROPERTY_REAL_QUEUE_ID, PROPERTY_REAL_TOPIC, SCHEDULE_TOPIC
from storage.read.gaps import unit_runs

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_UNITS: Final = 1_000


class DelayedMessages(NamedTuple):
    """A message in the delay topic that has not been delivered."""

    message: MessageExt
    level: int
    due_timestamp: int
    topic: str
    """Its target topic."""
    queue_id: int

    def as_row(
        self,
    ) -> tuple[int, str, list[str], str, int, int, int, int, str | None, int, int, int]:
        """What tables and lists show of it: when it is due, its id, keys, target topic and queue,
        level, attempts, store time, tag, bytes, offset in the queue of the level, log offset."""
        message = self.message
        return (
            self.due_timestamp,
            message.msg_id,
            list(message.keys),
            self.topic,
            self.queue_id,
            self.level,
            message.reconsume_times,
            message.store_timestamp,
            message.tags,
            message.store_size,
            message.queue_offset,
            message.commitlog_offset,
        )


class Level(NamedTuple):
    """Position of one delay level."""

    level: int
    delay_ms: int | None
    saved_offset: int | None
    min_offset: int
    max_offset: int

    @property
    def queue_id(self) -> int:
        """Its queue in the delay topic."""
        return self.level - 1

    @property
    def begin(self) -> int:
        """The next offset to deliver, within the queue's bounds, as RocketMQ corrects it."""
        return min(max(self.saved_offset or 0, self.min_offset), self.max_offset)

    @property
    def is_ahead(self) -> bool:
        """Whether its saved offset lies beyond its end."""
        return self.saved_offset is not None and self.saved_offset > self.max_offset

    @property
    def is_in_doubt(self) -> bool:
        """Whether it is unknown what waits there: it is ahead, and its queue has messages."""
        return self.is_ahead and self.min_offset < self.max_offset


def levels(view: StoreView) -> list[Level]:
    """All levels that have or had messages."""
    saved = load_delay_offsets(view.root)
    delays = parse_delay_levels(view.config.message_delay_level)
    found = []
    for topic, queue_id in view.queues():
        if topic == SCHEDULE_TOPIC:
            bounds = view.queue_bounds(topic, queue_id)
            delay_ms = delays[queue_id] if queue_id < len(delays) else None
            found.append(Level(queue_id + 1, delay_ms, saved.get(queue_id + 1), *bounds))
    return found


def doubt_of_level(level: int) -> str:
    """A sentence about a level whose saved offset lies beyond its end."""
    return (
        f"how many messages wait in delay level {level} is unknown: its saved offset lies beyond "
        "its end; see 'rmqctl retry agenda'"
    )


def targets_in_doubt(view: StoreView) -> dict[int, set[str]]:
    """The levels of :func:`messages_in_doubt`, with the targets of the messages."""
    found: dict[int, set[str]] = {}
    for one in messages_in_doubt(view):
        found.setdefault(one.level, set()).add(one.topic)
    return found


def messages_in_doubt(view: StoreView) -> Iterator[DelayedMessages]:
    """The messages of the levels whose saved offset lies beyond their end, by level.

    Of these it is unknown whether they wait. Reads each of them.
    """
    for level in levels(view):
        if level.is_in_doubt:
            for found, _, _ in _messages(view, level, level.min_offset):
                yield found


def first_in_doubt(view: StoreView, level: Level) -> DelayedMessages | None:
    """The first message of a level of which it is unknown what waits; None in another one."""
    if not level.is_in_doubt:
        return None
    return next((found for found, _, _ in _messages(view, level, level.min_offset)), None)


def waiting_counts(view: StoreView) -> dict[int, Counter[str] | None]:
    """How many messages wait in each level for each topic; None in a level that is in doubt.

    Reads each of them: 10 us a message.
    """
    return {
        level.level: (
            None if level.is_in_doubt else Counter(one.topic for one in waiting(view, level))
        )
        for level in levels(view)
    }


def waiting_from_head(view: StoreView, level: Level) -> tuple[int, DelayedMessages | None]:
    """How many messages of a level have not been delivered, and the first of them.

    Reads the head of the level only; so those behind it that cannot be read or name no target are
    counted, too.
    """
    from storage.configs.early_deliveries import EarlyDeliveries  # few stores have delayed messages

    first = next(waiting(view, level), None)
    if first is None:
        return 0, None
    at = first.message.queue_offset
    ended = 0
    for offset, place in EarlyDeliveries(view.root).of(level.queue_id):
        if at < offset < level.max_offset:
            unit = view.unit(SCHEDULE_TOPIC, level.queue_id, offset)
            ended += unit is not None and unit[0] == place
    return level.max_offset - at - ended, first


def waiting(view: StoreView, level: Level, at: int | None = None) -> Iterator[DelayedMessages]:
    """The messages of a level that have not been delivered, in the order of delivery; ``at``: only
    those from this queue offset on, if it is known that none there has been delivered in its turn.

    The delivering process notes its offset every 10 s only, so messages at the head are searched
    for in their targets. Messages that cannot be read, or name no target, are passed over, as
    delivery does, and so are those that were sent before their time.
    """
    from storage.configs.early_deliveries import EarlyDeliveries  # few stores have delayed messages

    ended = EarlyDeliveries(view.root)
    delivered = at is None
    for found, offset, place in _messages(view, level, level.begin if at is None else at):
        if ended.has(level.queue_id, offset, place):
            continue
        delivered = delivered and _lies_there(view, found)
        if not delivered:
            yield found


def _messages(view: StoreView, level: Level, at: int) -> Iterator[tuple[DelayedMessages, int, int]]:
    """The messages of a level from an offset on, with their queue offsets and log offsets.

    Goes on after missing units, as delivery does.
    """
    queue = SCHEDULE_TOPIC, level.queue_id
    for first, units in unit_runs(view, *queue, at, level.max_offset, _UNITS):
        for offset, unit in enumerate(CQ_STORE_UNIT.iter_unpack(units), first):
            message = view.message_of_unit(SCHEDULE_TOPIC, level.queue_id, offset, unit)
            found = None if message is None else _waiting(message, level, unit[2])
            if found is not None:
                yield found, offset, unit[0]


def _waiting(message: MessageExt, level: Level, tags_code: int) -> DelayedMessages | None:
    topic = message.get_property(PROPERTY_REAL_TOPIC)
    queue_id = parse_int(message.get_property(PROPERTY_REAL_QUEUE_ID) or "")
    if not topic or queue_id is None:
        return None
    due = _due(message, tags_code, level.delay_ms or 0)
    return DelayedMessages(message, level.level, due, topic, queue_id)


def _due(message: MessageExt, tags_code: int, delay_ms: int) -> int:
    if tags_code <= MAX_EXT_ADDR:  # an address; what lies there was computed from the store time
        return message.store_timestamp + delay_ms
    return tags_code


def was_due(view: StoreView, message: MessageExt) -> int | None:
    """When a delivered message was due (ms), by its record in the delay topic; when it was
    delivered, if that was earlier. None if the record is gone or has no unit."""
    delays = parse_delay_levels(view.config.message_delay_level)
    delivered, dues = message.store_timestamp, []
    for copy in copies(view, SCHEDULE_TOPIC, message):
        unit = view.unit(SCHEDULE_TOPIC, copy.queue_id, copy.queue_offset)
        if (
            copy.reconsume_times == message.reconsume_times
            and copy.get_property(PROPERTY_REAL_TOPIC) == message.topic
            and copy.commitlog_offset < message.commitlog_offset
            and unit is not None
            and copy.queue_id < len(delays)
        ):
            dues.append(_due(copy, unit[2], delays[copy.queue_id]))
    before = [due for due in dues if due <= delivered]  # of several, one may still wait
    return max(before) if before else delivered if dues else None


def _lies_there(view: StoreView, found: DelayedMessages) -> bool:
    """Whether a waiting message has been delivered: a copy of this attempt came when it was due.

    Only such a copy: an interrupted consumer may give one message back twice.
    """
    message = found.message
    return any(
        copy.reconsume_times == message.reconsume_times
        and copy.store_timestamp >= found.due_timestamp - CLOCK_STEP_MS
        for copy in copies(view, found.topic, message)
    )


def copies(view: StoreView, topic: str, message: MessageExt) -> list[MessageExt]:
    """All records of a topic with the unique id of a message and its birth, in log order.

    For those that are found see StoreView.find_unique; none for a message without a unique id.
    """
    if message.msg_id == message.offset_msg_id:
        return []
    return [
        copy
        for copy in view.find_unique(topic, message.msg_id)
        if copy.msg_id == message.msg_id and copy.born_timestamp == message.born_timestamp
    ]
