"""Finding single messages: by id, and by offset."""

from typing import TYPE_CHECKING

from rmqctl.admin.known_topics import check_topic_exists
from rmqctl.admin.messages.search.keys import Look, read_all, with_key
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import DAMAGED
from storage.format.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


def with_id(
    cli: "Cli", view: "StoreView", message_id: str, topic: str | None
) -> "list[MessageExt]":
    """All messages with an id, in log order, as retries keep their unique id.

    Uses the index for the part of the log that it covers, and searches the rest. NotFound if there
    is none, UsageProblem for an invalid id, CliError (4) for a damaged message.
    """
    if topic is not None:
        check_topic_exists(view, topic)
    topics = None if topic is None else [topic]
    position = _log_position(message_id)
    damaged: list[int] = []
    if position is not None:
        named = view.look_message_by_offset(position)
        if named is not None and named.offset_msg_id == message_id.upper():
            if topic in (None, named.topic):
                return [named]
        elif named is None and _is_damaged_record(view, position):
            damaged.append(position)
    # Another text than RocketMQ's ids may be an id that a user set.
    look = Look.INDEX if position is None else Look.EVERYWHERE
    for spelling in dict.fromkeys((message_id, message_id.upper())):
        hits = with_key(cli, view, spelling, topics, look)
        found = [one for one in read_all(cli, view, hits.offsets) if one.msg_id == spelling]
        if found:
            return found
        damaged += hits.damaged
    if position is None:
        raise UsageProblem(
            f"{message_id!r} is not a message id: RocketMQ's ids are 32 or 56 hex digits; "
            f"'message query TOPIC -k {message_id}' finds a key, 'message search' any text"
        )
    if damaged:
        raise CliError(
            f"the message with the id {message_id} cannot be read: the record at log position "
            f"{damaged[0]} is damaged; 'rmqctl store fsck' says how",
            DAMAGED,
        )
    where = view.root if topic is None else f"topic {topic} of {view.root}"
    raise NotFound(
        f"no message has the id {message_id} in {where}; "
        "'rmqctl message query --key ID --scan' searches without the index"
    )


def _log_position(message_id: str) -> int | None:
    """The log position in an offset id; both kinds of ids look alike. None for another text."""
    try:
        return parse_offset_msg_id(message_id)[1]
    except ValueError:
        return None


def _is_damaged_record(view: "StoreView", position: int) -> bool:
    """Whether an unreadable record begins at a log position."""
    from rmqctl.store.dump.position import piece_at

    try:
        return piece_at(view, position).kind == "DAMAGED"
    except NotFound:
        return False


def at_place(view: "StoreView", topic: str, queue_id: int, offset: int) -> "MessageExt":
    """The message at a queue offset.

    NotFound outside of the queue, CliError (4) for a damaged message.
    """
    check_topic_exists(view, topic)
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
