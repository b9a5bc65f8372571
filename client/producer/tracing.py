"""Producers of traces: each dispatcher sends by one of its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from broker.validation import GROUP_MAX_LENGTH
from client.trace.dispatcher import MAX_MSG_SIZE, TraceDispatcher
from storage.format.message import TRACE_TOPIC

from .config import ProducerConfig
from .producer import Producer

if TYPE_CHECKING:
    from client.runtime.instance import ClientInstance

SEND_TIMEOUT_MS: Final = 5_000
GROUP_NAME_PREFIX: Final = "_INNER_TRACE_PRODUCER"

_counter = itertools.count(1)


def trace_dispatcher(
    instance: ClientInstance, group: str, kind: str, trace_topic: str = TRACE_TOPIC
) -> TraceDispatcher:
    """Make the dispatcher of a group; ``kind`` is PRODUCE or CONSUME. Of a long group the name of
    its producer has only the beginning."""
    config = ProducerConfig(send_msg_timeout_ms=SEND_TIMEOUT_MS, max_message_size=MAX_MSG_SIZE)
    ending = f"-{kind}-{next(_counter)}"
    name = f"{GROUP_NAME_PREFIX}-{group}"[: GROUP_MAX_LENGTH - len(ending)] + ending
    producer = Producer.within(instance, name, config)
    return TraceDispatcher(producer, trace_topic, instance.clock, instance.scheduler)
