"""One dead letter in full."""

from typing import TYPE_CHECKING

from broker.retrying.lineage import redrive_count
from rmqctl.errors import CliError
from rmqctl.exit_codes import DAMAGED
from rmqctl.output.values import plain
from rmqctl.retrying.facts import origin_of, reason_parts
from rmqctl.retrying.life import life_of
from rmqctl.rows.deadletters import DeadLetter
from rmqctl.rows.messages import body_texts
from storage.format.errors import BodyError

from .letters import DeadLetters

if TYPE_CHECKING:
    from storage.model import MessageExt


def described(letters: DeadLetters, message: "MessageExt", now_ms: int) -> DeadLetter:
    """Everything about it. CliError (4) if its body is damaged."""
    try:
        body = message.body
    except BodyError as error:
        raise CliError(f"dead letter {message.queue_offset}: {error}", DAMAGED) from error
    text, encoded = body_texts(body, "text")
    return DeadLetter(
        letters.group,
        message.queue_id,
        message.queue_offset,
        message.msg_id,
        message.offset_msg_id,
        list(message.keys),
        message.tags,
        message.reconsume_times,
        message.store_timestamp,
        now_ms - message.store_timestamp,
        letters.is_handled(message),
        redrive_count(message.properties),
        origin_of(letters.view, message)._asdict(),
        reason_parts(message),
        message.born_timestamp,
        message.born_host,
        message.store_size,
        len(body),
        text,
        encoded,
        message.properties,
        [plain(event) for event in life_of(letters.view, letters.group, message)],
    )
