"""Messages of a queue: one, and all from an offset or a time on."""

from collections.abc import Generator
from typing import TYPE_CHECKING

from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.known_topics import check_queues_exist
from rmqctl.admin.left_out import tell_unreadable
from rmqctl.admin.message_filter import EVERY_MESSAGE, MessageFilter
from rmqctl.admin.queue_scan import QueueScan
from rmqctl.errors import CliError, NotFound
from rmqctl.exit_codes import DAMAGED

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


def at_offset(view: "StoreView", topic: str, queue_id: int, offset: int) -> "MessageExt":
    """The message at a queue offset.

    NotFound outside of the queue, and for a queue that the topic does not have; CliError (4) for a
    damaged message.
    """
    check_queues_exist(view, [topic], [queue_id])
    low, high = view.queue_bounds(topic, queue_id)
    if not low <= offset < high:
        has = f"it has offsets {low} to {high - 1}" if low < high else "it is empty"
        raise NotFound(f"queue {queue_id} of topic {topic} has no offset {offset}: {has}")
    found = view.get_message(topic, queue_id, offset, 1)
    if not found.messages or found.next_begin_offset != offset + 1:
        raise CliError(
            f"the message at offset {offset} of queue {queue_id} of topic {topic} cannot be read; "
            "'rmqctl store fsck' shows why",
            DAMAGED,
        )
    return found.messages[0]


def in_queue(
    view: "StoreView",
    topic: str,
    queue_id: int,
    offset: int = 0,
    wanted: MessageFilter = EVERY_MESSAGE,
    *,
    left_out: Warn = no_warning,
) -> "Generator[MessageExt]":
    """The messages of a queue from an offset on, up to the end of the queue as of now.

    The times of ``wanted`` limit what is read. ``left_out`` is called at the end, or where it
    is closed before, if messages could not be read. NotFound for an unknown topic, and for a queue
    that it does not have.
    """
    check_queues_exist(view, [topic], [queue_id])
    return _in_queue(view, topic, queue_id, offset, wanted, left_out)


def _in_queue(
    view: "StoreView",
    topic: str,
    queue_id: int,
    offset: int,
    wanted: MessageFilter,
    left_out: Warn,
) -> "Generator[MessageExt]":
    scan = QueueScan(view, topic, wanted._replace(queues=(queue_id,)), {queue_id: offset})
    try:
        yield from scan.messages()
    finally:
        tell_unreadable(left_out, scan.unreadable, scan.bodies, "messages")
