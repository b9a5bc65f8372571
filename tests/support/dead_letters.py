"""Making dead letters and retries as a consumer's failures do, without a consumer."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from broker.api.failure_reason import failure_properties
from broker.api.send_back import SendBackRequest
from broker.embedded.broker import EmbeddedBroker
from storage.format.message import Message, MessageExt, dlq_topic

NOW_MS = 1_700_000_000_000


def failing(text: str) -> dict[str, str]:
    """Why a consumer failed."""
    return failure_properties(RuntimeError(text), "client@1", NOW_MS)


def give_back(
    broker: EmbeddedBroker,
    group: str,
    message: MessageExt,
    *,
    level: int = -1,
    why: str | None = "no reason at all",
) -> None:
    """Give a stored message back; level -1 makes it a dead letter, None for ``why`` a Java one."""
    broker.send_message_back(
        SendBackRequest(
            group,
            message.topic,
            message.commitlog_offset,
            message.msg_id,
            level,
            failure=failing(why) if why is not None else {},
        )
    )


def bury(
    root: Path,
    group: str,
    messages: Iterable[Message],
    reasons: Sequence[str | None] = ("no reason at all",),
) -> list[MessageExt]:
    """Store messages and let them die in a group; gives the group's dead letters."""
    with EmbeddedBroker.open(root) as broker:
        for number, message in enumerate(messages):
            sent = broker.send(message)
            (stored,) = broker.query_unique(message.topic, sent.msg_id)
            give_back(broker, group, stored, why=reasons[number % len(reasons)])
        topic = dlq_topic(group)
        return list(broker.view.get_message(topic, 0, 0, 32).messages)


def deliver(broker: EmbeddedBroker, now_ms: int) -> None:
    """Have delayed messages delivered that are due by the broker's own clock, which says so."""
    assert broker.delayed is not None
    while broker.delayed.tick(now_ms) <= now_ms:
        pass
    broker.delayed.shutdown()
