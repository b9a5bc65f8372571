"""What makes a SendTemplate, and how long it holds (storage/append/send_template.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.api.send import SendOptions, SendResult, SendStatus
from storage.append.send_template import SendTemplate
from storage.format.message import MessageQueue

if TYPE_CHECKING:
    from storage.configs.topics import TopicConfig

    from .message_builder import Origin

_TRUSTED_MS: Final = 1
"""A client makes new options each millisecond. One that does not sees a file edited by hand as late
as with SharedTable.recent."""


def send_template(
    config: TopicConfig,
    options: SendOptions,
    origin: Origin,
    *,
    broker_name: str,
    added: bytes,
    added_to_items: bytes,
    largest: int,
    changes: int,
    now_ms: int,
) -> SendTemplate:
    """Combine the look-ups for a message that was sent with these options.

    Most of a send repeats the look-ups of the message before. Where messages come quickly they
    carry the same options (a client has one object for all of a millisecond), so the results are
    cached: the topic's settings, the origin, the form of the result. ``put_sent`` of storage/native
    puts a plain message from that in one step.
    """
    topic = config.topic_name
    count = max(config.write_queue_nums, config.read_queue_nums)
    return SendTemplate(
        topic,
        tuple([MessageQueue(topic, broker_name, queue_id) for queue_id in range(count)]),
        added,
        largest,
        origin,
        changes,
        now_ms + _TRUSTED_MS,
        origin.store_host.hex().upper(),
        SendResult,
        SendStatus.SEND_OK,
        options,
        added_to_items,
    )
