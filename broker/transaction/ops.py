"""Half messages that have ended, according to op messages, and the position of the checks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from broker.api.offsets import OffsetCommit
from storage.format.java_numbers import parse_digits
from storage.format.message import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC

from .transaction import REMOVE_TAG

if TYPE_CHECKING:
    from broker.offset.offset_manager import ConsumerOffsetManager
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

logger = logging.getLogger("rmqctl.broker")

HALF_QUEUE: Final = 0
CHECK_GROUP: Final = "CID_RMQ_SYS_TRANS"
"""Group whose progress is the position of the checks (MixAll.CID_SYS_RMQ_TRANS)."""
_OP_MESSAGES: Final = 32
_LOG_WAS_CUT: Final = {"command": "transaction check", "reason": "the log ends before the progress"}


class EndedTransactions:
    """Half messages that have ended, by queue offset; read from the op topic as far as needed.

    ``first_half`` is where the round begins: op messages of earlier ones are done with.
    """

    def __init__(self, view: Callable[[], StoreView], first_op: int, first_half: int) -> None:
        self._view = view
        self._next_op = first_op
        self._first_half = first_half
        self._op_of: dict[int, int] = {}
        self._earlier: set[int] = set()
        self._named: set[int] = set()
        self._open: dict[int, int] = {}  # op offset -> half messages of it not yet passed over

    def read_more(self) -> bool:
        """Read some op messages; False if there are no more."""
        while True:
            found = self._view().get_message(
                TRANS_OP_HALF_TOPIC, HALF_QUEUE, self._next_op, _OP_MESSAGES
            )
            if found.messages:
                break
            if found.next_begin_offset == self._next_op:
                return False
            self._next_op = found.next_begin_offset
        for op in found.messages:
            for half in _half_offsets(op):
                self._named.add(half)
                if half < self._first_half:
                    self._earlier.add(half)
                elif half not in self._op_of:
                    self._op_of[half] = op.queue_offset
                    self._open[op.queue_offset] = self._open.get(op.queue_offset, 0) + 1
        self._next_op = found.next_begin_offset
        return True

    def take(self, half_offset: int) -> bool:
        """Return whether a half message has ended, and note that it is passed over."""
        op = self._op_of.pop(half_offset, None)
        if op is None:
            return False
        self._open[op] -= 1
        if not self._open[op]:
            del self._open[op]
        return True

    def take_earlier(self, half_offset: int) -> bool:
        """The same for one that has been stored again since, by its first offset.

        RocketMQ forgets op messages of offsets before the round's first, and checks once more.
        """
        return half_offset in self._earlier or self.take(half_offset)

    def names(self, half_offsets: Iterable[int]) -> bool:
        """Return whether an op message of this round has ended one of these half messages."""
        return not self._named.isdisjoint(half_offsets)

    def done_up_to(self) -> int:
        """Give the offset of the first op message that is still needed."""
        return min(self._open, default=self._next_op)


class TransactionOffsets:
    """Progress of the checks in the half and the op topic."""

    def __init__(self, progress: ConsumerOffsetManager, view: Callable[[], StoreView]) -> None:
        self._progress = progress
        self._view = view

    def query(self) -> tuple[int, int]:
        """Give the first half and op offset: the stored ones, else the first in the queue."""
        return self._offset(TRANS_HALF_TOPIC), self._offset(TRANS_OP_HALF_TOPIC)

    def commit(self, half_offset: int, op_offset: int) -> None:
        """Store the position of a round. It may be less than before, if the log was cut.

        The copies and op messages that let it pass are on the device first.
        """
        moved = False
        for topic, offset in ((TRANS_HALF_TOPIC, half_offset), (TRANS_OP_HALF_TOPIC, op_offset)):
            if offset == self._offset(topic):
                continue
            self._progress.rest_on_log()
            known = self._progress.query(CHECK_GROUP, topic, HALF_QUEUE)
            if known.offset is not None and offset < known.offset:
                self._progress.move(CHECK_GROUP, {(topic, HALF_QUEUE): offset}, _LOG_WAS_CUT)
            else:
                commit = OffsetCommit(topic, HALF_QUEUE, offset, known.generation)
                self._progress.commit(CHECK_GROUP, [commit])
            moved = True
        if moved:
            self._progress.persist()  # for a Java broker that comes after a kill

    def _offset(self, topic: str) -> int:
        known = self._progress.query(CHECK_GROUP, topic, HALF_QUEUE).offset
        if known is None or known < 0:  # of Java's file, which holds whatever a client sent
            return self._view().min_offset_in_queue(topic, HALF_QUEUE)
        return known


def _half_offsets(op: MessageExt) -> list[int]:
    """Read an op message: one offset, or several with commas (5.x); nothing if it is none.

    As it is stored: none is ever compressed, whatever a damaged sysFlag says.
    """
    if op.tags != REMOVE_TAG:
        return []
    parts = op.raw_body.decode("ascii", "replace").split(",")
    offsets = [offset for part in parts if (offset := parse_digits(part)) is not None]
    if not offsets:
        logger.warning("an op message names no half message, and is passed over: %s", op.place)
    return offsets
