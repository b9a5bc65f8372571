"""Noting pulls outside of their queue (PullMessageProcessor.generateOffsetMovedEvent of 4.9)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from storage.errors import RocketMQError
from storage.format.encode import MessageInner, prepare
from storage.format.host import pack_host
from storage.format.message import (
    OFFSET_MOVED_EVENT,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
)
from storage.format.properties import encode_properties

if TYPE_CHECKING:
    from broker.api.pull import PullRequest
    from broker.config import BrokerConfig
    from storage.results import PutMessageResult

logger = logging.getLogger("rmqctl.broker")


class OffsetMovedEvents:
    """Stores a message for each such pull, key and tag being the group."""

    def __init__(
        self,
        config: BrokerConfig,
        put: Callable[..., PutMessageResult],
        now: Callable[[], int],
    ) -> None:
        self._broker_name = config.broker_name
        self._host = pack_host(config.store_host)
        self._put = put
        self._now = now

    def note(self, request: PullRequest, next_offset: int) -> None:
        """Store one; if the store refuses it, the pull is answered all the same."""
        group = request.consumer_group
        event = {
            "consumerGroup": group,
            "messageQueue": {
                "brokerName": self._broker_name,
                "queueId": request.queue_id,
                "topic": request.topic,
            },
            "offsetNew": next_offset,
            "offsetRequest": request.queue_offset,
        }
        properties = {PROPERTY_KEYS: group, PROPERTY_DELAY_TIME_LEVEL: "0", PROPERTY_TAGS: group}
        message = MessageInner(
            OFFSET_MOVED_EVENT,
            0,
            json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode(),
            encode_properties(properties),
            self._now(),
            self._host,
            self._host,
            tags=group,
            keys=(group,),
        )
        try:
            self._put(prepare((message,)))
        except RocketMQError as error:
            logger.warning("a pull outside of its queue could not be noted: %s", error)
