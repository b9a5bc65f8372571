"""A client that notes what its broker asks of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from broker.api.members import (
    ConsumeDirectlyResult,
    ConsumeDirectlyStatus,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from broker.api.offsets import ConsumeFromWhere
from broker.api.transactions import CheckTransactionState
from storage.format.message import MessageExt, MessageQueue

WAIT_SECONDS = 10


class RecordingClient:
    """A ClientHandler; ``calls`` are the names of its methods with their arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._more = threading.Condition()

    def note(self, *call: Any) -> None:
        with self._more:
            self.calls.append(call)
            self._more.notify_all()

    def wait_for(self, *call: Any, times: int = 1) -> bool:
        """Wait until it was called so, and so often."""
        with self._more:
            return self._more.wait_for(lambda: self.calls.count(call) >= times, WAIT_SECONDS)

    def wait_until(self, happened: Callable[[list[tuple[Any, ...]]], bool]) -> bool:
        with self._more:
            return self._more.wait_for(lambda: happened(self.calls), WAIT_SECONDS)

    def notify_consumer_ids_changed(self, group: str) -> None:
        self.note("changed", group)

    def notify_topics_changed(self, topics: Collection[str]) -> None:
        self.note("topics", sorted(topics))

    def reset_offset(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        self.note("reset", group, topic, dict(offsets))

    def check_transaction_state(self, request: CheckTransactionState) -> None:
        self.note("check", request)

    def consumer_status(self, group: str, topic: str) -> Mapping[MessageQueue, int]:
        self.note("status", group, topic)
        return {MessageQueue(topic, "broker-a", 3): 41}

    def consumer_running_info(self, group: str) -> Mapping[str, Any]:
        self.note("info", group)
        return {"group": group, "threads": 20}

    def consume_message_directly(self, group: str, message: MessageExt) -> ConsumeDirectlyResult:
        self.note("consume", group, message.body)
        if message.body == b"poison":
            raise ValueError("the listener broke")
        if message.body == b"exit":
            raise SystemExit("the listener left")
        return ConsumeDirectlyResult(
            order=False,
            auto_commit=True,
            consume_result=ConsumeDirectlyStatus.CR_LATER,
            remark=message.body.decode(),
            spent_time_mills=7,
        )


def subscription(topic: str, text: str = "*", version: int = 0) -> SubscriptionData:
    tags = frozenset() if text == "*" else frozenset(text.split("||"))
    return SubscriptionData(topic, text, tags, sub_version=version)


def consumer(
    group: str,
    *subscriptions: SubscriptionData | str,
    model: MessageModel = MessageModel.CLUSTERING,
) -> ConsumerData:
    return ConsumerData(
        group,
        ConsumeType.CONSUME_PASSIVELY,
        model,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        tuple(subscription(s) if isinstance(s, str) else s for s in subscriptions),
    )


def heartbeat(
    client_id: str, *consumers: ConsumerData, producers: tuple[str, ...] = ()
) -> HeartbeatData:
    return HeartbeatData(client_id, producers, consumers)
