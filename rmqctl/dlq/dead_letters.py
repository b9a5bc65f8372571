"""Facts about dead letters."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from broker.retry.redrive_properties import redrive_count
from rmqctl.errors import CliError, NotFound
from rmqctl.exit_codes import DAMAGED
from rmqctl.retry.failures import origin_of, reason_text
from rmqctl.retry.known_groups import check_known_group
from rmqctl.retry.queues import QueueScan
from storage.configs.dlq_acks import NOTHING_HANDLED, AckedOffsets, DlqAcksFile
from storage.format.errors import BodyError
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, PROPERTY_ORIGIN_MESSAGE_ID, dlq_topic

from .rows import DeadLetterRow, DlqRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.filter_options import MessageFilter
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_PREVIEW: Final = 80
"""Characters of a body in a preview."""
_UNITS: Final = 10_000


class DeadLetters:
    """The dead letters of one group, as they are now."""

    def __init__(self, broker: "EmbeddedBroker", group: str, *, named: bool = True) -> None:
        """NotFound for an unknown group, if the user ``named`` it."""
        if named:
            check_known_group(broker, group)
        self.group = group
        self.topic = dlq_topic(group)
        self.view = broker.view
        self.queue_ids = [q for topic, q in self.view.queues() if topic == self.topic]
        self._handled = DlqAcksFile(self.view.root, self.view).read(self.topic)
        self.unreadable = 0
        self.bodies: Sequence[str] = ()

    def handled_in(self, queue_id: int) -> AckedOffsets:
        """The marks of one queue."""
        return self._handled.get(queue_id, NOTHING_HANDLED)

    def is_handled(self, message: "MessageExt") -> bool:
        """Whether a dead letter is marked."""
        return message.queue_offset in self.handled_in(message.queue_id)

    def messages(
        self, wanted: "MessageFilter | None" = None, *, unhandled: bool = False
    ) -> Iterator["MessageExt"]:
        """The dead letters that a filter selects, oldest first in each queue.

        Afterwards ``unreadable`` is the number that could not be read, and ``bodies`` names some
        whose bodies the filter needed and that cannot be unpacked.
        """
        begins = {queue_id: marks.cursor for queue_id, marks in self._handled.items()}
        scan = QueueScan(self.view, self.topic, wanted, begins if unhandled else {})
        for message in scan.messages():
            if not (unhandled and self.is_handled(message)):
                yield message
        self.unreadable, self.bodies = scan.unreadable, scan.bodies

    def depth(self) -> int:
        """The number of dead letters."""
        return sum(high - low for low, high in self._bounds())

    def marked(self) -> int:
        """The number of dead letters that are marked as handled."""
        return sum(
            self.handled_in(queue_id).within(*self.view.queue_bounds(self.topic, queue_id))
            for queue_id in self.queue_ids
        )

    def row(self) -> DlqRow:
        """The row of ``dlq list``."""
        times = [
            stamp
            for queue_id in self.queue_ids
            for stamp in self._ends(queue_id)
            if stamp is not None
        ]
        return DlqRow(
            self.group,
            self.depth(),
            self.depth() - self.marked(),
            min(times, default=None),
            max(times, default=None),
            sum(self._bytes(queue_id) for queue_id in self.queue_ids),
        )

    def _bounds(self) -> Iterator[tuple[int, int]]:
        for queue_id in self.queue_ids:
            low, high = self.view.queue_bounds(self.topic, queue_id)
            yield low, high

    def _ends(self, queue_id: int) -> tuple[int | None, ...]:
        low, high = self.view.queue_bounds(self.topic, queue_id)
        if low == high:
            return ()
        return tuple(self.view.store_timestamp(self.topic, queue_id, at) for at in (low, high - 1))

    def _bytes(self, queue_id: int) -> int:
        at, high = self.view.queue_bounds(self.topic, queue_id)
        total = 0
        while at < high:
            units = self.view.units(self.topic, queue_id, at, _UNITS)
            if not units:
                break
            total += sum(size for _, size, _ in units)
            at += len(units)
        return total


def dlq_rows(broker: "EmbeddedBroker") -> Iterator[DlqRow]:
    """All groups that have a dead letter topic, by name."""
    names = {*broker.topics(), *(topic for topic, _ in broker.view.queues())}
    for name in sorted(names):
        if name.startswith(DLQ_GROUP_TOPIC_PREFIX):
            group = name.removeprefix(DLQ_GROUP_TOPIC_PREFIX)
            yield DeadLetters(broker, group, named=False).row()


def dead_letter_row(dead_letters: DeadLetters, message: "MessageExt", now_ms: int) -> DeadLetterRow:
    """The row of one dead letter; its age is relative to ``now_ms``."""
    return DeadLetterRow(
        message.queue_offset,
        message.msg_id,
        list(message.keys),
        origin_of(dead_letters.view, message).topic,
        message.reconsume_times,
        message.store_timestamp,
        now_ms - message.store_timestamp,
        reason_text(message),
        dead_letters.is_handled(message),
        message.store_size,
        message.tags,
        message.get_property(PROPERTY_ORIGIN_MESSAGE_ID),
        redrive_count(message.properties),
        preview(message),
    )


def preview(message: "MessageExt") -> str | None:
    """The beginning of the body; None if it is not text, or damaged."""
    try:
        text = message.body.decode("utf-8")
    except (UnicodeDecodeError, BodyError):
        return None
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 3] + "..."


def with_id(dead_letters: DeadLetters, view: "StoreView", message_id: str) -> "MessageExt":
    """The dead letter with an id: offset id, unique id, id of the origin, or queue offset.

    The newest of several with one id: a message that failed again keeps its unique id. NotFound if
    there is none, CliError (4) if it is damaged.
    """
    if message_id.isascii() and message_id.isdigit() and len(message_id) < 20:
        found = _at_offset(dead_letters, view, int(message_id))
    else:
        found = _newest(dead_letters, view, message_id)
    if found is None:
        raise NotFound(f"group {dead_letters.group} has no dead letter {message_id!r}")
    return found


def _at_offset(dead_letters: DeadLetters, view: "StoreView", offset: int) -> "MessageExt | None":
    for queue_id in dead_letters.queue_ids:
        unit = view.unit(dead_letters.topic, queue_id, offset)
        if unit is not None:
            found = view.message_of_unit(dead_letters.topic, queue_id, offset, unit)
            if found is None:
                raise CliError(
                    f"dead letter {offset} of group {dead_letters.group} cannot be read; "
                    "'rmqctl store fsck' shows why",
                    DAMAGED,
                )
            return found
    return None


def _newest(dead_letters: DeadLetters, view: "StoreView", message_id: str) -> "MessageExt | None":
    from rmqctl.retry.failures import record_with_id

    for text in dict.fromkeys((message_id, message_id.upper())):
        found = record_with_id(view, text, None)
        if found is not None and found.topic == dead_letters.topic:
            return found
        hits = view.find_unique(dead_letters.topic, text)
        if hits:
            return hits[-1]
    wanted = message_id.upper()
    newest = None
    for message in dead_letters.messages():
        if wanted in (message.msg_id, message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)):
            newest = message
    return newest
