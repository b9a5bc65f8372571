"""Facts about dead letters."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.retry.failures import origin_of, reason_text, record_with_id
from broker.retry.redrive_properties import redrive_count
from rmqctl.admin.known_groups import check_known_group
from rmqctl.admin.message_filter import EVERY_MESSAGE, MessageFilter, MessageSelection, key_hint
from rmqctl.admin.queue_scan import QueueScan
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.errors import CliError, NotFound
from rmqctl.exit_codes import CHANGED, DAMAGED
from storage.clock import now_ms as clock_ms
from storage.configs.dlq_acks import NOTHING_HANDLED, AckedOffsets, DlqAcksFile, Marks
from storage.counted import counted
from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK_SIZE
from storage.format.errors import BodyError
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, PROPERTY_ORIGIN_MESSAGE_ID, dlq_topic
from storage.known import of_all
from storage.read.gaps import unit_runs
from storage.read.replaced import pre_blanks, was_repaired, without_message

from .rows import DeadLetterRow, DlqRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_PREVIEW: Final = 80
"""Characters of a body in a preview."""
_UNITS: Final = 10_000

Place = tuple[int, int]
"""Queue id and queue offset of a dead letter."""


class DeadLetters:
    """The dead letters of one group, as they are now."""

    def __init__(
        self,
        view: "StoreView",
        broker: "Broker",
        group: str,
        *,
        named: bool = True,
        is_repaired: bool | None = None,
    ) -> None:
        """NotFound for an unknown group, if the user ``named`` it.

        ``is_repaired``: whether a repair may have emptied places; None: its journal is asked.
        """
        if named:
            check_known_group(view, broker, group)
        self.group = group
        self.topic = dlq_topic(group)
        self.view = view
        self.queue_ids = [q for topic, q in self.view.queues() if topic == self.topic]
        self._handled = DlqAcksFile(self.view.root, self.view).read(self.topic)
        self._given_repaired = is_repaired
        self._scan: QueueScan | None = None

    @cached_property
    def _is_repaired(self) -> bool:
        known = self._given_repaired
        return was_repaired(self.view.root) if known is None else known

    def handled_in(self, queue_id: int) -> AckedOffsets:
        """The marks of one queue."""
        return self._handled.get(queue_id, NOTHING_HANDLED)

    def take_for_handled(self, places: Iterable[Place]) -> None:
        """Count dead letters as handled whose marks are not written yet."""
        for queue_id, ranges in as_marks(places).items():
            self._handled[queue_id] = self.handled_in(queue_id).with_marks(ranges)

    def is_handled(self, place: Place) -> bool:
        """Whether a dead letter is marked."""
        queue_id, offset = place
        return offset in self.handled_in(queue_id)

    def messages(
        self,
        wanted: MessageFilter = EVERY_MESSAGE,
        *,
        unhandled: bool = False,
        on_progress: OnProgress = no_progress,
    ) -> Iterator["MessageExt"]:
        """The dead letters that a filter selects, oldest first in each queue.

        For those that could not be read see ``unreadable`` and ``bodies``.
        """
        begins = {queue_id: marks.cursor for queue_id, marks in self._handled.items()}
        scan = QueueScan(self.view, self.topic, wanted, begins if unhandled else {}, on_progress)
        self._scan = scan
        for message in scan.messages():
            if not (unhandled and self.is_handled(place_of(message))):
                yield message

    @property
    def unreadable(self) -> int:
        """How many the last reading has left out so far, as they could not be read."""
        return 0 if self._scan is None else self._scan.unreadable

    @property
    def bodies(self) -> Sequence[str]:
        """Some of them whose bodies the filter needed and that cannot be unpacked."""
        return () if self._scan is None else self._scan.bodies

    def rows(
        self,
        wanted: MessageFilter = EVERY_MESSAGE,
        *,
        unhandled: bool = False,
        now_ms: int | None = None,
    ) -> Iterator[DeadLetterRow]:
        """The rows of ``messages``; ages are relative to ``now_ms``, by default now."""
        now = clock_ms() if now_ms is None else now_ms
        for message in self.messages(wanted, unhandled=unhandled):
            yield DeadLetterRow(
                message.queue_offset,
                message.msg_id,
                list(message.keys),
                origin_of(self.view, message).topic,
                message.reconsume_times,
                message.store_timestamp,
                now - message.store_timestamp,
                reason_text(message),
                self.is_handled(place_of(message)),
                message.store_size,
                message.tags,
                message.get_property(PROPERTY_ORIGIN_MESSAGE_ID),
                redrive_count(message.properties),
                preview(message),
            )

    def chosen(
        self,
        chosen: MessageSelection,
        *,
        handled: bool = False,
        on_progress: OnProgress = no_progress,
    ) -> Iterator["MessageExt"]:
        """The dead letters of a selection; those named by id even if they were handled.

        With ``handled`` so are those that a filter selects. NotFound for an unknown id. For what
        cannot be read see ``messages``.
        """
        if not chosen.ids:
            yield from self.messages(chosen.wanted, unhandled=not handled, on_progress=on_progress)
            return
        found = {}
        for message_id in chosen.ids:
            message = self.find(message_id)
            found[place_of(message)] = message
        yield from found.values()

    def find(self, message_id: str) -> "MessageExt":
        """The dead letter with an id: offset id, unique id, id of the origin, or queue offset.

        The newest of several with one id: a message that failed again keeps its unique id. NotFound
        if there is none, CliError (4) if it is damaged.
        """
        if message_id.isascii() and message_id.isdigit() and len(message_id) < 20:
            found = self._at_offset(int(message_id))
        else:
            found = self._newest(message_id)
        if found is None:
            raise NotFound(
                f"group {self.group} has no dead letter {message_id!r}{key_hint(message_id)}"
            )
        return found

    def at(self, place: Place) -> "MessageExt | None":
        """The dead letter at a place; None if it has expired or is damaged."""
        return dead_letter_at(self.view, self.topic, place)

    def depth(self) -> int:
        """The number of dead letters; a place that a repair has emptied is none."""
        return sum(counts.depth for counts in self._counts)

    def marked(self) -> int:
        """The number of dead letters that are marked as handled."""
        return sum(counts.marked for counts in self._counts) if self._handled else 0

    def row(self) -> DlqRow:
        """The row of ``dlq list``."""
        ends = [self._ends(counts) for counts in self._counts if counts.depth]
        return DlqRow(
            self.group,
            self.depth(),
            self.depth() - self.marked(),
            of_all(min, (oldest for oldest, _ in ends)),
            of_all(max, (newest for _, newest in ends)),
            sum(counts.bytes for counts in self._counts),
        )

    @cached_property
    def _counts(self) -> "list[_Counts]":
        return [self._count(queue_id) for queue_id in self.queue_ids]

    def _count(self, queue_id: int) -> "_Counts":
        """Count a queue's dead letters, damaged ones too."""
        low, high = self.view.queue_bounds(self.topic, queue_id)
        marks = self.handled_in(queue_id)
        depth, marked, size = high - low, marks.within(low, high), 0
        first: int | None = None
        last, following = high - 1, low
        for at, data in unit_runs(self.view, self.topic, queue_id, low, high, _UNITS):
            units = list(CQ_STORE_UNIT.iter_unpack(data))
            if first is None and at > following:
                first = following  # each missing unit stands for a message
            emptied = set(
                without_message(self.view, units) if self._is_repaired else pre_blanks(units)
            )
            depth -= len(emptied)
            marked -= sum(at + index in marks for index in emptied)
            sizes = (unit[1] for index, unit in enumerate(units) if index not in emptied)
            size += sum(one for one in sizes if 0 < one < PRE_BLANK_SIZE)
            if len(emptied) < len(units):
                indexes = range(len(units))
                if first is None:
                    first = at + next(index for index in indexes if index not in emptied)
                last = at + next(index for index in reversed(indexes) if index not in emptied)
            following = at + len(units)
        if following < high:
            last = high - 1
        return _Counts(queue_id, depth, marked, size, following if first is None else first, last)

    def _ends(self, counts: "_Counts") -> tuple[int | None, int | None]:
        """When the oldest and the newest one of a queue were stored; None: unknown."""
        queue = self.topic, counts.queue_id
        first, last = (self.view.store_timestamp(*queue, at) for at in (counts.first, counts.last))
        return first, last

    def _at_offset(self, offset: int) -> "MessageExt | None":
        for queue_id in self.queue_ids:
            if self.view.unit(self.topic, queue_id, offset) is not None:
                found = self.at((queue_id, offset))
                if found is None:
                    raise CliError(
                        f"dead letter {offset} of group {self.group} cannot be read; "
                        "'rmqctl store fsck' shows why",
                        DAMAGED,
                    )
                return found
        return None

    def _newest(self, message_id: str) -> "MessageExt | None":
        texts = list(dict.fromkeys((message_id, message_id.upper())))
        for text in texts:
            found = record_with_id(self.view, text, None)
            if found is not None and found.topic == self.topic:
                return found
            hits = self.view.find_unique(self.topic, text)
            if hits:
                return hits[-1]
        newest: dict[str, MessageExt] = {}
        for message in self.messages():
            for text in texts:
                if text in (message.msg_id, message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)):
                    newest[text] = message
        return next((newest[text] for text in texts if text in newest), None)


class _Counts(NamedTuple):
    """The dead letters of a queue, and the offsets of the oldest and the newest one."""

    queue_id: int
    depth: int
    marked: int
    bytes: int
    first: int
    last: int


def place_of(message: "MessageExt") -> Place:
    """The place of a dead letter."""
    return message.queue_id, message.queue_offset


def as_marks(places: Iterable[Place]) -> Marks:
    """Places as ranges by queue."""
    marks: Marks = {}
    for queue_id, offset in places:
        marks.setdefault(queue_id, []).append((offset, offset + 1))
    return marks


def dead_letter_at(view: "StoreView", topic: str, place: Place) -> "MessageExt | None":
    """The message at a place in a dead letter topic; None if it has expired or is damaged."""
    queue_id, offset = place
    unit = view.unit(topic, queue_id, offset)
    return None if unit is None else view.message_of_unit(topic, queue_id, offset, unit)


def refuse_others(
    view: "StoreView", topic: str, planned: Iterable[tuple[Place, str | None]], nothing: str
) -> None:
    """Raise CliError (6) if other dead letters lie at planned places, as in another store.

    ``planned`` has the unique id of each, None for one that could not be read then. One that has
    expired since, or cannot be read any more, is no other one. ``nothing``: what was not done.
    """
    ends: dict[int, int] = {}
    others = 0
    for place, msg_id in planned:
        queue_id, offset = place
        if queue_id not in ends:
            ends[queue_id] = view.queue_bounds(topic, queue_id).max_offset
        found = None if msg_id is None else dead_letter_at(view, topic, place)
        others += offset >= ends[queue_id] or (found is not None and found.msg_id != msg_id)
    if others:
        raise CliError(
            f"{view.root} was replaced by another store in the meantime: {counted(others, 'place')}"
            f" of the plan {'has' if others == 1 else 'have'} another dead letter, or none; "
            f"{nothing}",
            CHANGED,
        )


def list_groups(view: "StoreView", broker: "Broker") -> Iterator[DlqRow]:
    """All groups that have a dead letter topic, by name."""
    names = {*broker.topics(), *(topic for topic, _ in view.queues())}
    is_repaired = was_repaired(view.root)
    for name in sorted(names):
        if name.startswith(DLQ_GROUP_TOPIC_PREFIX):
            group = name.removeprefix(DLQ_GROUP_TOPIC_PREFIX)
            yield DeadLetters(view, broker, group, named=False, is_repaired=is_repaired).row()


def preview(message: "MessageExt") -> str | None:
    """The beginning of the body; None if it is not text, or damaged."""
    try:
        text = message.body.decode("utf-8")
    except (UnicodeDecodeError, BodyError):
        return None
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 3] + "..."
