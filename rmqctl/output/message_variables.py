"""The environment of a program that gets a message."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.format.message import MessageExt


def message_variables(message: "MessageExt") -> dict[str, str]:
    """The environment variables of a message."""
    values = {
        "RMQ_TOPIC": message.topic,
        "RMQ_QUEUE_ID": str(message.queue_id),
        "RMQ_QUEUE_OFFSET": str(message.queue_offset),
        "RMQ_MSG_ID": message.msg_id,
        "RMQ_TAGS": message.tags or "",
        "RMQ_KEYS": " ".join(message.keys),
        "RMQ_RECONSUME_TIMES": str(message.reconsume_times),
    }
    # A variable cannot contain a zero byte.
    return {name: value.replace("\0", "") for name, value in values.items()}
