"""What ``produce`` prints about messages that were acknowledged."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

if TYPE_CHECKING:
    from broker.api.send import ColumnSendResult


class SentRow(NamedTuple):
    """One message that is stored."""

    send_status: Annotated[str, "SEND_OK, or what is not sure about a stored message"]
    topic: Annotated[str, "where it was sent"]
    queue_id: Annotated[int, "the queue"]
    queue_offset: Annotated[int, "its place in the queue"]
    msg_id: Annotated[str, "the unique id that the producer gave it"]
    offset_msg_id: Annotated[str, "the id made of the store's address and the log position"]


def sent_rows(result: "ColumnSendResult") -> Iterator[SentRow]:
    """A row for each message of a column."""
    from storage.format.message_id import offset_msg_id

    queues = result.queue_ids
    count = len(result.unique_ids)
    for queue_id, queue_offset, unique_id, commitlog_offset in zip(
        [queues] * count if isinstance(queues, int) else queues,
        result.queue_offsets,
        result.unique_ids,
        result.commitlog_offsets,
        strict=True,
    ):
        yield SentRow(
            result.send_status.value,
            result.topic,
            int(queue_id),
            int(queue_offset),
            unique_id.decode(),
            offset_msg_id(result.store_host, int(commitlog_offset)),
        )
