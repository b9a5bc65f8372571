"""Finding single messages."""

from typing import TYPE_CHECKING

from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import DAMAGED
from storage.format.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from rmqctl.context import Cli
    from storage.model import MessageExt


def with_id(
    cli: "Cli", broker: "EmbeddedBroker", message_id: str, topic: str | None
) -> "list[MessageExt]":
    """All messages with a unique or offset id, in log order."""
    view = broker.view
    topics = [topic] if topic is not None else list(broker.topics())
    found = {
        message.commitlog_offset: message
        for name in topics
        for message in view.find_unique(name, message_id)
        if message.msg_id == message_id
    }
    if found:
        return [found[offset] for offset in sorted(found)]
    try:
        _, position = parse_offset_msg_id(message_id)
    except ValueError as error:
        raise UsageProblem(str(error)) from None
    message = view.look_message_by_offset(position)
    if message is None or message.offset_msg_id != message_id.upper():
        return []
    return [message]


def at_place(broker: "EmbeddedBroker", topic: str, queue_id: int, offset: int) -> "MessageExt":
    """The message at a queue offset. NotFound outside the queue."""
    view = broker.view
    if broker.topic(topic) is None:
        raise NotFound(f"topic {topic} does not exist in {view.root}")
    low, high = view.queue_bounds(topic, queue_id)
    if not low <= offset < high:
        raise NotFound(
            f"queue {queue_id} of topic {topic} has no offset {offset}: "
            + (f"it has {low} to {high - 1}" if low < high else "it is empty")
        )
    messages = view.get_message(topic, queue_id, offset, 1).messages
    if not messages or messages[0].queue_offset != offset:
        raise CliError(
            f"the message at offset {offset} of queue {queue_id} of topic {topic} can not be read; "
            "'rmqctl store fsck' says why",
            DAMAGED,
        )
    return messages[0]
