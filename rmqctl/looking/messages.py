"""Finding single messages: by id, and by place."""

from typing import TYPE_CHECKING, Final

from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import DAMAGED
from storage.format.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from rmqctl.context import Cli
    from storage.model import MessageExt
    from storage.readonly import StoreView

_MOST: Final = 64
"""Most hits of one look into the index (maxMsgsNumBatch)."""


def with_id(
    cli: "Cli", broker: "EmbeddedBroker", message_id: str, topic: str | None
) -> "list[MessageExt]":
    """All messages with an id, in log order: retries keep their unique id.

    The index answers for what it covers, the rest of the log is searched. NotFound if there is
    none, UsageProblem for what can not be an id, CliError (4) for a message that is damaged.
    """
    if topic is not None and broker.topic(topic) is None:
        from broker.validation import check_topic

        check_topic(topic)
        raise NotFound(f"topic {topic} does not exist in {broker.view.root}")
    found = _Found(broker.view, topic)
    position = _log_position(message_id)
    if position is not None:
        found.look(position, offset_id=message_id.upper())
    for spelling in dict.fromkeys((message_id, message_id.upper())):
        if not found.messages:
            found.ask_index([topic] if topic is not None else list(broker.topics()), spelling)
    if position is not None and not found.by_offset_id:
        found.search(cli, message_id)
    if found.messages:
        return [found.messages[offset] for offset in sorted(found.messages)]
    if position is None:
        raise UsageProblem(
            f"{message_id!r} is no message id: those of RocketMQ are 32 or 56 hex digits"
        )
    if found.damaged is not None:
        raise CliError(
            f"the message with the id {message_id} can not be read: the record at log position "
            f"{found.damaged} is damaged; 'rmqctl store fsck' says how",
            DAMAGED,
        )
    where = broker.view.root if topic is None else f"topic {topic} of {broker.view.root}"
    raise NotFound(f"no message has the id {message_id} in {where}")


def _log_position(message_id: str) -> int | None:
    """Where an offset id points to; both kinds of ids look alike. None for no id at all."""
    try:
        return parse_offset_msg_id(message_id)[1]
    except ValueError:
        return None


class _Found:
    """Messages by log offset, as they are found."""

    def __init__(self, view: "StoreView", topic: str | None) -> None:
        self._view = view
        self._topic = topic
        self.messages: dict[int, MessageExt] = {}
        self.by_offset_id = False
        self.damaged: int | None = None

    def look(self, position: int, *, offset_id: str) -> None:
        """Take the message at a place if the id is really its offset id."""
        message = self._view.look_message_by_offset(position)
        if message is not None and message.offset_msg_id == offset_id and self._is_wanted(message):
            self.messages[position] = message
            self.by_offset_id = True
        elif message is None and self._is_damaged_record(position):
            self.damaged = position

    def ask_index(self, topics: list[str], message_id: str) -> None:
        """Take what the index leads to."""
        view = self._view
        low, high = view.log_min_offset(), view.log_max_offset()
        for topic in topics:
            hits = view.query_message(topic, message_id, _MOST)
            read = {message.commitlog_offset for message in hits.messages}
            for message in hits.messages:
                if message.topic == topic:
                    self._take(message, message_id)
            for offset in hits.index_offsets:
                if low <= offset < high and offset not in read:
                    self.damaged = offset

    def search(self, cli: "Cli", message_id: str) -> None:
        """Go through the log behind the last record that the index knows, or through all of it."""
        from storage.files.read_files import StoreFiles
        from storage.reading.index_reader import IndexReader
        from storage.reading.log_search import find_in_log

        view = self._view
        index = IndexReader(view.root, view.config)
        headers = [index.header(name) for name in index.names()]
        covered = max((header.end_phy_offset for header in headers if header), default=0)
        start = max(covered, view.log_min_offset())
        end = view.log_max_offset()
        log = StoreFiles(view.root, view.config).log
        with cli.progress("search", "bytes", end - start) as progress:
            needle = message_id.upper().encode()
            for offset in find_in_log(
                log, start, end, needle, lambda done: progress.advance(done, done)
            ):
                message = view.look_message_by_offset(offset)
                if message is not None:
                    self._take(message, message_id.upper())
                else:
                    self.damaged = offset

    def _take(self, message: "MessageExt", message_id: str) -> None:
        if message.msg_id == message_id and self._is_wanted(message):
            self.messages[message.commitlog_offset] = message

    def _is_wanted(self, message: "MessageExt") -> bool:
        return self._topic in (None, message.topic)

    def _is_damaged_record(self, position: int) -> bool:
        """Whether a record begins there that can not be read."""
        from rmqctl.dumping.position import piece_at

        try:
            return piece_at(self._view, position).kind == "DAMAGED"
        except NotFound:
            return False


def at_place(broker: "EmbeddedBroker", topic: str, queue_id: int, offset: int) -> "MessageExt":
    """The message at a queue offset.

    NotFound outside of the queue, CliError (4) if it is damaged.
    """
    view = broker.view
    if broker.topic(topic) is None:
        from broker.validation import check_topic

        check_topic(topic)
        raise NotFound(f"topic {topic} does not exist in {view.root}")
    low, high = view.queue_bounds(topic, queue_id)
    if not low <= offset < high:
        has = f"it has {low} to {high - 1}" if low < high else "it is empty"
        raise NotFound(f"queue {queue_id} of topic {topic} has no offset {offset}: {has}")
    found = view.get_message(topic, queue_id, offset, 1)
    if not found.messages or found.next_begin_offset != offset + 1:
        raise CliError(
            f"the message at offset {offset} of queue {queue_id} of topic {topic} can not be read; "
            "'rmqctl store fsck' says why",
            DAMAGED,
        )
    return found.messages[0]
