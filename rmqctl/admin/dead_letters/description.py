"""One dead letter in full."""

from typing import TYPE_CHECKING

from broker.retry.failures import origin_of, reason_parts
from broker.retry.redrive_properties import redrive_count
from rmqctl.admin.retries.timeline import life
from rmqctl.output.message_rows import body_texts
from rmqctl.output.values import plain
from storage.clock import now_ms as clock_ms
from storage.format.errors import BodyError

from .dead_letters import DeadLetters, place_of
from .rows import DeadLetter

if TYPE_CHECKING:
    from storage.format.message import MessageExt


def body_error(message: "MessageExt") -> str | None:
    """The message and the reason why its body cannot be unpacked; None if it can be."""
    try:
        message.body  # noqa: B018 - to hear why it cannot be unpacked
    except BodyError as error:
        return str(error)
    return None


def describe(
    dead_letters: DeadLetters, message: "MessageExt", now_ms: int | None = None
) -> DeadLetter:
    """All facts about one of them; the body is None if it cannot be unpacked."""
    now = clock_ms() if now_ms is None else now_ms
    size: int | None = None
    text = encoded = None
    if body_error(message) is None:
        body = message.body
        size = len(body)
        text, encoded = body_texts(body, "text")
    return DeadLetter(
        dead_letters.group,
        message.queue_id,
        message.queue_offset,
        message.msg_id,
        message.offset_msg_id,
        list(message.keys),
        message.tags,
        message.reconsume_times,
        message.store_timestamp,
        now - message.store_timestamp,
        dead_letters.is_handled(place_of(message)),
        redrive_count(message.properties),
        origin_of(dead_letters.view, message)._asdict(),
        reason_parts(message),
        message.born_timestamp,
        message.born_host,
        message.store_size,
        size,
        text,
        encoded,
        message.properties,
        [plain(event) for event in life(dead_letters.view, dead_letters.group, message)],
    )
