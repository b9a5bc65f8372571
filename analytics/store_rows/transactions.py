"""Open transactions, as their check would find them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.transaction.open_halves import open_halves
from storage.format.java_numbers import parse_int
from storage.format.message import (
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_CHECK_TIMES,
)

from .messages import body_of
from .row_types import TransactionRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .wanted import Wanted


def transaction_rows(broker: EmbeddedBroker, name: str, wanted: Wanted) -> Iterator[TransactionRow]:
    """A row for each open transaction, in the order of the queue of half messages. The check passes
    over messages that cannot be read, and so does this."""
    for half in open_halves(broker.view, broker.progress):
        topic = half.get_property(PROPERTY_REAL_TOPIC)
        if wanted.takes_topic(topic):
            yield TransactionRow(
                name,
                topic,
                parse_int(half.get_property(PROPERTY_REAL_QUEUE_ID) or ""),
                half.msg_id,
                list(half.keys),
                half.tags,
                half.get_property(PROPERTY_PRODUCER_GROUP),
                parse_int(half.get_property(PROPERTY_TRANSACTION_CHECK_TIMES) or "") or 0,
                half.born_timestamp,
                half.store_timestamp,
                half.store_size,
                half.queue_offset,
                half.commitlog_offset,
                body_of(half, wanted),
            )
