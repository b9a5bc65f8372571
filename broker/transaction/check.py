"""Asking producers what became of half messages (TransactionalMessageServiceImpl.check of 4.9).

A round goes through the half messages from where the last one ended. One that has ended (an op
message names its queue offset) is passed over. One that is old enough is stored again at the end of
the half topic, with one check more, and its producer is asked about the new one; so the queue's
beginning moves on although nothing is ever changed in place. One that was checked too often, or
that is older than the retention time, goes to TRANS_CHECK_MAX_TIME_TOPIC.

The position of the rounds is progress of group CID_RMQ_SYS_TRANS in the half and the op topic. It
is committed every 32 copies; the next checker finds what a killed one has stored again since
(copies.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.api.transactions import CheckTransactionState
from broker.errors import BrokerSystemError, MessageIllegalError
from broker.send.message_builder import encode_stored, stored_again
from broker.send.send import prepared, put_outcome
from storage.errors import RocketMQError
from storage.format.encode import MessageInner
from storage.format.message import (
    PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    MessageExt,
)

from .copies import HalfCopies
from .ops import HALF_QUEUE, EndedTransactions, TransactionOffsets
from .transaction import real_queue

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.offset.offset_manager import ConsumerOffsetManager
    from broker.tables.topics import TopicManager
    from storage.readonly import StoreView
    from storage.results import PutMessageResult

logger = logging.getLogger("rmqctl.broker")

MAX_QUEUE_PROCESS_TIME_MS: Final = 60_000
"""Longest round; the next one goes on where it ended."""
QUEUE_NUMS: Final = 1
COMMIT_EVERY: Final = 32
"""Records after which progress is committed: with a Java broker at most so many come again."""

Ask = Callable[[CheckTransactionState], bool]
"""Passes a question to a live producer of the group; False if there is none. Does not wait."""


class TransactionCheckService:
    """Checks the half messages of one store. For one thread.

    ``put`` is MessageStore.put; ``file_reserved_ms`` how long messages are kept; ``settle``
    completes what a killed writer left in the log.
    """

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicManager,
        progress: ConsumerOffsetManager,
        *,
        view: Callable[[], StoreView],
        put: Callable[..., PutMessageResult],
        ask: Ask,
        now: Callable[[], int],
        file_reserved_ms: int,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._interval_ms = config.transaction_check_interval_ms
        self._timeout_ms = config.transaction_timeout_ms
        self._check_max = config.transaction_check_max
        self._file_reserved_ms = file_reserved_ms
        self._settle = settle
        self._topics = topics
        self._offsets = TransactionOffsets(progress, view)
        self._view = view
        self._put = put
        self._ask = ask
        self._now = now
        self._due: int | None = None
        self._ended_at: int | None = None
        self._uncommitted = 0

    def tick(self, now_ms: int) -> int:
        """Run a round if it is time; gives when to call again, ms since the epoch.

        Raises the errors of reading, storing and committing; then the next round begins where this
        one did.
        """
        latest = now_ms + self._interval_ms
        if self._due is None or self._due > latest:  # the start; or the clock was moved back
            self._due = latest
        if self._due <= now_ms:
            self._due = latest
            self.check()
        return self._due

    def check(self) -> None:
        """Run one round."""
        start = self._now()
        end = self._view().max_offset_in_queue(TRANS_HALF_TOPIC, HALF_QUEUE)
        if end == 0:
            return  # no transaction so far
        self._topics.for_own_use(TRANS_HALF_TOPIC, QUEUE_NUMS)
        half_offset, op_offset = self._offsets.query()
        known, self._ended_at = self._ended_at, None
        if half_offset != known:
            self._settle()
        copies = HalfCopies(self._view(), half_offset, wanted=half_offset != known)
        ended = EndedTransactions(self._view, op_offset, half_offset)
        ended.read_more()
        offset = self._go_through(half_offset, end, ended, copies, start)
        self._offsets.commit(offset, ended.done_up_to())
        self._ended_at = offset

    def _go_through(
        self, offset: int, end: int, ended: EndedTransactions, copies: HalfCopies, start: int
    ) -> int:
        """Check half messages one by one; gives the offset of the first that is left.

        What lies from ``end`` on was stored since the round began. RocketMQ compares store times
        for it; here those may be later than the clock, if that was set back.
        """
        self._uncommitted = 0
        while self._now() - start <= MAX_QUEUE_PROCESS_TIME_MS:
            if self._uncommitted >= COMMIT_EVERY:
                self._offsets.commit(offset, ended.done_up_to())
                self._uncommitted = 0
            if ended.take(offset) or copies.is_followed(offset):
                offset += 1
                continue
            found = self._view().get_message(TRANS_HALF_TOPIC, HALF_QUEUE, offset, 1)
            if not found.messages:
                if found.next_begin_offset == offset:
                    break  # the end of the queue
                offset = found.next_begin_offset
                continue
            half = found.messages[0]
            if half.queue_offset != offset:  # what lay before it cannot be read
                offset = half.queue_offset
                continue
            others = copies.others(offset)
            while others and not ended.names(others) and ended.read_more():
                pass
            if others and ended.names(others):
                offset += 1
                continue
            age = self._now() - half.born_timestamp
            if self._is_given_up(half, age) or not _names_real_queue(half):
                if not copies.is_aside(half):
                    self._give_up(half)
                offset += 1
                continue
            if offset >= end:
                break  # stored again in this round
            immunity = half.get_property(PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS)
            if immunity is None:
                if 0 <= age <= self._timeout_ms:
                    break
            elif age < self._immunity_ms(immunity):
                if not ended.take_earlier(_prepared_offset(half)):
                    self._or_put_aside(self._store_immune, half, copies)
                offset += 1
                continue
            if ended.read_more():
                continue  # perhaps it has ended by now
            if not ended.take_earlier(_prepared_offset(half)):
                self._or_put_aside(self._check_again, half, copies)
            offset += 1
        return offset

    def _is_given_up(self, half: MessageExt, age: int) -> bool:
        """Return whether checks of it end; if not, counts the check that follows."""
        times = _whole_number(half.get_property(PROPERTY_TRANSACTION_CHECK_TIMES), 0)
        if times >= self._check_max:
            return True
        half.properties = {
            **half.properties,
            PROPERTY_TRANSACTION_CHECK_TIMES: str(times + 1),
        }
        return age > self._file_reserved_ms

    def _immunity_ms(self, seconds: str) -> int:
        number = _whole_number(seconds, -1)
        return self._timeout_ms if number == -1 else number * 1000

    def _give_up(self, half: MessageExt) -> None:
        if self._put_aside(half):
            logger.warning(
                "half message %s of %s was asked about too often, or is too old: it is in %s now",
                half.msg_id,
                half.get_property(PROPERTY_PRODUCER_GROUP),
                TRANS_CHECK_MAX_TIME_TOPIC,
            )

    def _or_put_aside(
        self, store: Callable[[MessageExt], None], half: MessageExt, copies: HalfCopies
    ) -> None:
        """Store a half message again; put it aside if its next record breaks a limit.

        A record with one check more is longer. Without an end of its checks, the half messages
        behind it would wait for ever.
        """
        try:
            store(half)
        except MessageIllegalError as error:
            if not copies.is_aside(half) and self._put_aside(half):
                logger.error(  # noqa: TRY400 - its text says all
                    "half message %s of %s cannot be checked again: %s; it is in %s now",
                    half.msg_id,
                    half.get_property(PROPERTY_PRODUCER_GROUP),
                    error,
                    TRANS_CHECK_MAX_TIME_TOPIC,
                )

    def _put_aside(self, half: MessageExt) -> bool:
        """Store a half message in TRANS_CHECK_MAX_TIME_TOPIC.

        It keeps its stored properties where those with the number of checks are too long. False:
        its record fits into no log file there; it stays where it is.
        """
        self._uncommitted += 1
        self._topics.for_own_use(TRANS_CHECK_MAX_TIME_TOPIC, QUEUE_NUMS)
        try:
            self._store_aside(half, encode_stored(half.properties))
        except MessageIllegalError:
            try:
                self._store_aside(half, None)
            except MessageIllegalError as error:
                logger.error(  # noqa: TRY400 - its text says all
                    "half message %s of %s stays in %s, and is not checked again: %s",
                    half.msg_id,
                    half.get_property(PROPERTY_PRODUCER_GROUP),
                    TRANS_HALF_TOPIC,
                    error,
                )
                return False
        return True

    def _store_aside(self, half: MessageExt, properties: bytes | None) -> None:
        inner = stored_again(half, TRANS_CHECK_MAX_TIME_TOPIC, 0, properties)
        put_outcome(self._put(prepared([inner])))

    def _store_immune(self, half: MessageExt) -> None:
        """Store a half message again whose producer has requested a longer time without checks."""
        self._uncommitted += 1
        half.properties = {
            PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET: str(half.queue_offset),
            **half.properties,
        }
        put_outcome(self._put(prepared([self._renewed(half)])))

    def _check_again(self, half: MessageExt) -> None:
        """Store a half message again and ask its producer about the new one."""
        self._uncommitted += 1
        result = self._put(prepared([self._renewed(half)]))
        put_outcome(result)
        half.commitlog_offset = int(result.commitlog_offsets[0])
        half.queue_offset = int(result.queue_offsets[0])
        half.store_timestamp = result.store_timestamp
        half.topic, half.queue_id = real_queue(half)
        group = half.get_property(PROPERTY_PRODUCER_GROUP) or ""
        unique_id = half.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or ""
        question = CheckTransactionState(
            group, half, half.queue_offset, half.commitlog_offset, unique_id, unique_id
        )
        try:
            asked = self._ask(question)
        except (RocketMQError, OSError) as error:
            logger.warning("asking group %s about %s: %s", group, half.msg_id, error)
            return
        if not asked:
            logger.warning("no live producer of group %s to ask about %s", group, half.msg_id)

    def _renewed(self, half: MessageExt) -> MessageInner:
        """Make the next record of a half message; flag and reconsume times are not
        kept (TransactionalMessageBridge.renewHalfMessageInner)."""
        properties = encode_stored(half.properties)
        return stored_again(
            half, TRANS_HALF_TOPIC, half.queue_id, properties, flag=0, reconsume_times=0
        )


def _names_real_queue(half: MessageExt) -> bool:
    try:
        real_queue(half)
    except BrokerSystemError:
        return False
    return True


def _prepared_offset(half: MessageExt) -> int:
    """Give the queue offset of the first copy of a half message, -1 if this is it."""
    return _whole_number(half.get_property(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET), -1)


def _whole_number(text: str | None, otherwise: int) -> int:
    try:
        return otherwise if text is None else int(text)
    except ValueError:
        return -1
