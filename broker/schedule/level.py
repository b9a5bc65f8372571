"""The messages that wait in one delay level (DeliverDelayedMessageTimerTask of 4.9).

They lie in one queue of SCHEDULE_TOPIC_XXXX in the order in which they were stored, so the first
one decides when to act. Java checks every 100 ms; here each run gives when the next one is due. If
nothing waits, that is the level's delay later: no message that is stored from now on is due before.
So delivery is as exact, and an idle store is checked once a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import MessageIllegalError
from broker.send.send import prepared
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, MAX_EXT_ADDR
from storage.format.delay import CLOCK_STEP_MS
from storage.format.message import (
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
)
from storage.log.record_reader import RecordNames
from storage.results import GetMessageStatus

from .message import message_timeup

if TYPE_CHECKING:
    from storage.configs.delivery_notes import DeliveryNote
    from storage.configs.early_deliveries import Place
    from storage.format.encode import MessageInner
    from storage.format.prepared import PreparedRecords
    from storage.readonly import StoreView
    from storage.results import PutMessageResult

    from .arrived import Since

logger = logging.getLogger("rmqctl.broker")

DELAY_FOR_A_WHILE_MS: Final = 100
"""When to retry after a failure."""
BATCH_UNITS: Final = 512
"""Messages that are delivered with one put, at most."""
BATCH_BYTES: Final = 1 << 20
"""Bytes of records after which a batch ends, to limit how long the write lock is held."""
_NAMES: Final = RecordNames(PROPERTY_REAL_TOPIC, PROPERTY_REAL_QUEUE_ID, TRANS_HALF_TOPIC)


class _Refusal(NamedTuple):
    """Why messages are not stored; ``of_message``: one breaks a limit, so it never will be."""

    reason: str
    of_message: bool


class DelayLevel:
    """Delivers one level. For one thread at a time.

    ``offset`` is the next queue offset to check. ``delivered`` is the offset for delayOffset.json,
    None until something was delivered or loaded. ``ended`` tests whether messages of a queue of the
    topic were sent before their time: those are passed over. ``intend`` is called with the level, a
    queue offset and the log's end before messages from that offset on are stored.
    """

    def __init__(
        self,
        level: int,
        delay_ms: int,
        *,
        view: Callable[[], StoreView],
        put: Callable[..., PutMessageResult],
        now: Callable[[], int],
        ended: Callable[[int], Collection[Place]] = lambda _: (),
        intend: Callable[[int, int, int], None] = lambda *_: None,
    ) -> None:
        self.level = level
        self.delay_ms = delay_ms
        self.queue_id = level - 1
        self.offset = 0
        self.delivered: int | None = None
        self._view = view
        self._put = put
        self._now = now
        self._ended = ended
        self._intend = intend
        self._arrived: frozenset[int] = frozenset()

    def load(self, offset: int | None, note: DeliveryNote | None = None) -> None:
        """Begin at a saved offset, corrected into the queue's bounds; None: at 0.

        Messages that have been delivered already are passed over: the process that delivered them
        may have been killed before it noted them. ``note`` is what that process was about to do.
        """
        self.offset = 0 if offset is None else self._within_bounds(offset)
        self.delivered = None if offset is None else self.offset
        self._arrived = frozenset()
        unit = self._view().unit(SCHEDULE_TOPIC, self.queue_id, self.offset)
        if unit is None:
            return
        from .arrived import DeliveredMessages  # not needed where nothing waits

        since = self._since(unit[0], unit[2], note)
        reached = DeliveredMessages(self._view(), self.queue_id, since, self._ended).after(
            self.offset
        )
        if reached.offset > self.offset or reached.others:
            logger.info(
                "delay level %d goes on at %d: what waits from %d on has arrived",
                self.level,
                reached.offset,
                self.offset,
            )
        if reached.offset > self.offset:
            self.offset = self.delivered = reached.offset
        self._arrived = reached.others

    def _since(self, log_offset: int, tags_code: int, note: DeliveryNote | None) -> Since:
        """Where copies of messages from ``offset`` on begin; the first waits at ``log_offset``."""
        from .arrived import Since, since_due

        view = self._view()
        if note is not None and note.log_offset <= view.log_max_offset():
            if note.offset == self.offset:
                return Since(max(log_offset, note.log_offset), None, exact=True)
            if note.offset < self.offset:
                log_offset = max(log_offset, note.log_offset)
        now = self._now()
        return since_due(log_offset, min(now, self._deliver_timestamp(tags_code, self.offset, now)))

    def run(self) -> int:
        """Deliver what is due, at most a batch; gives when to run again, ms since the epoch."""
        view = self._view()
        units = view.unit_bytes(SCHEDULE_TOPIC, self.queue_id, self.offset, BATCH_UNITS)
        # Read after the units, or a message stored in between would seem to come from the future.
        now = self._now()
        if not units:
            return self._pass_over(now)
        count = size = 0
        following = now
        for _, bytes_, tags_code in CQ_STORE_UNIT.iter_unpack(units):
            due = self._deliver_timestamp(tags_code, self.offset + count, now)
            if due > now or size > BATCH_BYTES:
                following = due
                break
            count += 1
            size += bytes_
        if count and not self._deliver(units[: count * CQ_STORE_UNIT_SIZE]):
            return now + DELAY_FOR_A_WHILE_MS
        return following

    def settle(self) -> None:
        """Wait for pending puts: none here."""

    def _deliver(self, units: bytes) -> bool:
        """Store what these units name, the first at ``offset``, and advance; False: not all."""
        self._note_intent()
        units = self._deliver_usual(units)
        if not units:
            return True
        inners: list[MessageInner] = []
        ends: list[int] = []
        for offset, inner in enumerate(self._read(self.offset, units), self.offset):
            if inner is not None:
                inners.append(inner)
                ends.append(offset + 1)
        reached = self.offset + len(units) // CQ_STORE_UNIT_SIZE
        if len(inners) > 1 and self._put_all(inners) is None:
            self.delivered = ends[-1]
        elif not self._put_each(inners, ends):
            return False
        self.offset = reached
        return True

    def _note_intent(self) -> None:
        """Note where the log ends before messages from ``offset`` on are stored."""
        self._intend(self.level, self.offset, self._view().log_max_offset())

    def _deliver_usual(self, units: bytes) -> bytes:
        """Store what compiled code handles, and advance; gives the units that are left.

        Those are units of unusual records, and of records that the store refuses: they are stored
        one by one to find the cause.
        """
        while units and not self._arrived and not self._ended(self.queue_id):
            made = self._view().readdressed(
                SCHEDULE_TOPIC, self.queue_id, self.offset, units, _NAMES
            )
            if made is None:
                break
            records, count = made
            if self._put_records(records) is not None:
                break
            self.offset = self.delivered = self.offset + count
            units = units[count * CQ_STORE_UNIT_SIZE :]
        return units

    def _put_each(self, inners: Sequence[MessageInner], ends: Sequence[int]) -> bool:
        """Put one by one: perhaps only one of them is the cause. False: one was not stored.

        One that no log file can hold under its real topic is passed over, or nothing behind it
        would ever be delivered.
        """
        for inner, end in zip(inners, ends, strict=True):
            refusal = self._put_all([inner])
            if refusal is not None and not refusal.of_message:
                return False
            if refusal is not None:
                self._report_passed_over(end - 1, inner, refusal.reason)
            self.offset = self.delivered = end
        return True

    def _report_passed_over(self, offset: int, inner: MessageInner, reason: str) -> None:
        logger.error(
            "delay level %d passes over its message %d, which is for topic %s: %s",
            self.level,
            offset,
            inner.topic,
            reason,
        )

    def _read(self, offset: int, units: bytes) -> list[MessageInner | None]:
        """Read delayed messages as their real messages; None for each that is gone, has no target,
        or has been delivered already."""
        ended, arrived = self._ended(self.queue_id), self._arrived
        messages = self._view().messages_of_units(SCHEDULE_TOPIC, self.queue_id, offset, units)
        if arrived and max(arrived) < offset:
            self._arrived = frozenset()
        return [
            None
            if message is None
            or at in arrived
            or (ended and (at, message.commitlog_offset) in ended)
            else message_timeup(message)
            for at, message in enumerate(messages, offset)
        ]

    def _put_all(self, inners: Sequence[MessageInner]) -> _Refusal | None:
        try:
            records = prepared(inners)
        except MessageIllegalError as error:
            return _Refusal(str(error), of_message=True)
        return self._put_records(records)

    def _put_records(self, records: PreparedRecords) -> _Refusal | None:
        result = self._put(records)
        if result.status.stored:
            return None
        if not result.status.illegal:
            logger.warning("delay level %d: the store answered %s", self.level, result.status)
        reason = result.reason or f"the store answered {result.status}"
        return _Refusal(reason, of_message=result.status.illegal)

    def _deliver_timestamp(self, tags_code: int, offset: int, now: int) -> int:
        """When a unit is due. Further ahead than the level's delay means that the clock was moved
        or the level changed: then it is due now (correctDeliverTimestamp)."""
        due = tags_code
        if due <= MAX_EXT_ADDR:  # an address; what lies there was computed from the store time
            stored = self._view().store_timestamp(SCHEDULE_TOPIC, self.queue_id, offset)
            due = now if stored is None else stored + self.delay_ms
        return now if due > now + self.delay_ms + CLOCK_STEP_MS else due

    def _pass_over(self, now: int) -> int:
        """Find where to go on if there is no unit at the offset."""
        nearest = self._within_bounds(self.offset)
        if nearest == self.offset:
            found = self._view().get_message(SCHEDULE_TOPIC, self.queue_id, nearest, 1)
            if found.status is GetMessageStatus.OFFSET_FOUND_NULL:  # a file is missing
                nearest = min(found.next_begin_offset, found.max_offset)
        if nearest == self.offset:
            return now + max(self.delay_ms, DELAY_FOR_A_WHILE_MS)
        logger.warning("delay level %d goes on at %d, not %d", self.level, nearest, self.offset)
        self.offset = nearest
        return now + DELAY_FOR_A_WHILE_MS

    def _within_bounds(self, offset: int) -> int:
        bounds = self._view().queue_bounds(SCHEDULE_TOPIC, self.queue_id)
        return min(max(offset, bounds.min_offset), bounds.max_offset)
