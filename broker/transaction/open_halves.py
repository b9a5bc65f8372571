"""Half messages of open transactions, as the transaction check would find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.format.java_numbers import parse_digits
from storage.format.message import PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET, TRANS_HALF_TOPIC

from .copies import HalfCopies
from .ops import HALF_QUEUE, EndedTransactions, TransactionOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.offset.offset_manager import ConsumerOffsetManager
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_BATCH = 32


def open_halves(view: StoreView, progress: ConsumerOffsetManager) -> Iterator[MessageExt]:
    """Give the last half message of each open transaction, in the order of the queue."""
    at, op = TransactionOffsets(progress, lambda: view).query()
    end = view.max_offset_in_queue(TRANS_HALF_TOPIC, HALF_QUEUE)
    if at >= end:
        return
    ended = EndedTransactions(lambda: view, op, at)
    while ended.read_more():
        pass
    copies = HalfCopies(view, at, wanted=True)
    while at < end:
        found = view.get_message(TRANS_HALF_TOPIC, HALF_QUEUE, at, _BATCH)
        for half in found.messages:
            offset = half.queue_offset
            if ended.take(offset) or copies.is_followed(offset):
                continue
            first = half.get_property(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET) or ""
            earlier = parse_digits(first)
            known = earlier is not None and ended.take_earlier(earlier)
            if not (known or ended.names(copies.others(offset))):
                yield half
        at = max(at + 1, found.next_begin_offset)
