"""Finding messages by id."""

from typing import TYPE_CHECKING

from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.known_topics import check_topic_exists
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import DAMAGED
from storage.format.message_id import parse_offset_msg_id

from .search.keys import Look, find_key, read_messages
from .search.run import record_finder

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


def with_id(
    view: "StoreView",
    message_id: str,
    topic: str | None = None,
    *,
    left_out: Warn = no_warning,
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
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
        hits = find_key(view, spelling, topics, look, jobs=jobs, on_progress=on_progress)
        found = [
            message
            for message in read_messages(view, hits.offsets, left_out)
            if message.msg_id == spelling
        ]
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
    finder = record_finder(view, view.files.apart().log, view.log_max_offset())
    record = finder.containing(position)
    if record is None or record.start != position:
        return False
    return record.message is None and not record.replaced
