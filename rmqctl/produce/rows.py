"""The rows of ``produce``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rmqctl.output.fields import Rank

if TYPE_CHECKING:
    from broker.api.send import ColumnSendResult


class SentRow(NamedTuple):
    """One stored message."""

    send_status: Annotated[
        str, "SEND_OK, or what is unconfirmed about the stored message", Rank.KEY
    ]
    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    queue_offset: Annotated[int, "its queue offset"]
    msg_id: Annotated[str, "the unique id, set by the producer", Rank.MAIN]
    offset_msg_id: Annotated[
        str, "the offset id: address of the store and log position", Rank.EXTRA
    ]


def sent_rows(result: "ColumnSendResult") -> Iterator[SentRow]:
    """A row for each message of a column."""
    from storage.format.message_id import offset_msg_id

    queues, topics = result.queue_ids, result.topic
    count = len(result.unique_ids)
    for topic, queue_id, queue_offset, unique_id, commitlog_offset in zip(
        [topics] * count if isinstance(topics, str) else topics,
        [queues] * count if isinstance(queues, int) else queues,
        result.queue_offsets,
        result.unique_ids,
        result.commitlog_offsets,
        strict=True,
    ):
        yield SentRow(
            result.send_status.value,
            topic,
            int(queue_id),
            int(queue_offset),
            unique_id.decode(),
            offset_msg_id(result.store_host, int(commitlog_offset)),
        )
