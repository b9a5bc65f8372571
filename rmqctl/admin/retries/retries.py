"""Facts about the messages that a group will consume again."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from analytics.lag.delayed import (
    DelayedMessages,
    doubt_of_level,
    levels,
    targets_in_doubt,
    waiting,
    was_due,
)
from analytics.lag.ready_retries import unknown_retries
from analytics.store_rows.retries import given_back_timestamp
from broker.api.failure_reason import FAILURE_CLIENT
from broker.retry.failures import failed_timestamp, origin_of, reason_text
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.known_groups import check_known_group
from rmqctl.admin.message_filter import EVERY_MESSAGE, MessageFilter
from rmqctl.admin.queue_scan import QueueScan
from rmqctl.admin.scan_progress import OnProgress, no_progress
from storage.clock import now_ms as clock_ms
from storage.format.errors import BodyError
from storage.format.message import dlq_topic, retry_topic

from .rows import RetryRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


WAITING: Final = "WAITING"
OVERDUE: Final = "OVERDUE"


class Retries:
    """The retries of one group at ``now_ms``."""

    def __init__(
        self,
        view: "StoreView",
        broker: "Broker",
        group: str,
        now_ms: int | None = None,
        *,
        held: Callable[[], Iterator[DelayedMessages]] | None = None,
    ) -> None:
        """``held`` gives the retries in the delay topic; None: they are looked for.

        NotFound for an unknown group.
        """
        check_known_group(view, broker, group)
        self.group = group
        self.topic = retry_topic(group)
        self.view = view
        self._held = held or (lambda: waiting_retries(view, group))
        self._now_ms = clock_ms() if now_ms is None else now_ms
        self._committed = broker.consumer_offsets(group).get((group, self.topic), {})
        self.unreadable = 0
        self.bodies: Sequence[str] = ()

    def rows(
        self,
        wanted: MessageFilter = EVERY_MESSAGE,
        left_out: Warn = no_warning,
        *,
        consumed: bool = False,
        on_progress: OnProgress = no_progress,
    ) -> list[RetryRow]:
        """The retries that wait, and those in the retry topic, by due time; where that is unknown,
        by the time of the delivery.

        With ``consumed``, also those in the retry topic that the group has read past. For
        ``left_out`` see takes; it also gets the sentences of :meth:`doubts`. Of the messages of a
        queue beyond whose end the group's progress lies it is unknown whether they were consumed:
        they come with ``consumed`` only, without a state. Afterwards ``unreadable`` is the number
        in the retry topic that could not be read, and ``bodies`` names some whose bodies cannot be
        unpacked.
        """
        held = [one for one in self.waiting() if takes(wanted, one, left_out)]
        dated = [(one.due_timestamp, self._waiting_row(one)) for one in held]
        begins = {} if consumed else self._committed
        scan = QueueScan(self.view, self.topic, wanted, begins, on_progress)
        unknown = self.unknown(wanted)
        for sentence in self.doubts(wanted):
            left_out(sentence)
        for message in scan.messages():
            state = None if message.queue_id in unknown else self._state(message)
            if consumed or state == "READY":
                failed = given_back_timestamp(self.view, message)
                due = was_due(self.view, message)
                at = message.store_timestamp if due is None else due
                dated.append((at, self._row(message, state, due, failed)))
        self.unreadable, self.bodies = scan.unreadable, scan.bodies
        return [row for _, row in sorted(dated, key=itemgetter(0))]

    def waiting(self) -> Iterator[DelayedMessages]:
        """Retries that wait in the delay topic, by level; including dead letters on their way."""
        return self._held()

    def ready(self, wanted: MessageFilter = EVERY_MESSAGE) -> Iterator["MessageExt"]:
        """Retries in the retry topic that the group has not read past, as far as a filter selects
        them."""
        yield from QueueScan(self.view, self.topic, wanted, self._committed).messages()

    def ready_state(self) -> Any:
        """What changes if a retry comes into the retry topic or goes, or is consumed."""
        ids = QueueScan(self.view, self.topic).queue_ids()
        bounds = {queue_id: self.view.queue_bounds(self.topic, queue_id) for queue_id in ids}
        return bounds, dict(self._committed)

    def unknown(self, wanted: MessageFilter = EVERY_MESSAGE) -> dict[int, str]:
        """The queues of the retry topic of which it is unknown what the group has consumed, each
        with a sentence; only those that a filter selects."""
        ids = QueueScan(self.view, self.topic, wanted).queue_ids()
        return unknown_retries(self.view, self.topic, ids, self._committed)

    def doubts(self, wanted: MessageFilter = EVERY_MESSAGE) -> list[str]:
        """A sentence for each queue of :meth:`unknown`, and for each level of
        :meth:`unknown_levels`."""
        return [*self.unknown(wanted).values(), *map(doubt_of_level, self.unknown_levels())]

    def unknown_levels(self) -> list[int]:
        """The delay levels with retries of which it is unknown whether they wait."""
        return levels_in_doubt(self.view, self.group)

    def _state(self, message: "MessageExt") -> str:
        committed = self._committed.get(message.queue_id)
        read_past = committed is not None and message.queue_offset < committed
        return "CONSUMED" if read_past else "READY"

    def _waiting_row(self, one: DelayedMessages) -> RetryRow:
        message = one.message
        failed = failed_timestamp(message)
        state = waiting_state(one.due_timestamp, self._now_ms)
        at = message.store_timestamp if failed is None else failed
        return self._row(message, state, one.due_timestamp, at)

    def _row(
        self, message: "MessageExt", state: str | None, due: int | None, failed: int | None
    ) -> RetryRow:
        origin = origin_of(self.view, message)
        return RetryRow(
            message.msg_id,
            list(message.keys),
            origin.topic,
            origin.queue_id,
            origin.queue_offset,
            message.reconsume_times,
            failed,
            due,
            reason_text(message),
            message.store_size,
            message.tags,
            message.delay_time_level or None,
            message.get_property(FAILURE_CLIENT),
            state,
            message.offset_msg_id,
        )


def waiting_state(due_timestamp: int, now_ms: int) -> str:
    """The state of a retry in the delay topic."""
    return WAITING if due_timestamp > now_ms else OVERDUE


def waiting_retries(view: "StoreView", group: str) -> Iterator[DelayedMessages]:
    """Retries of a group that wait in the delay topic; see ``Retries.waiting``."""
    targets = (retry_topic(group), dlq_topic(group))
    for level in levels(view):
        for one in waiting(view, level):
            if one.topic in targets:
                yield one


def levels_in_doubt(view: "StoreView", group: str) -> list[int]:
    """The delay levels with retries of a group of which it is unknown whether they wait."""
    targets = {retry_topic(group), dlq_topic(group)}
    return [level for level, topics in targets_in_doubt(view).items() if targets & topics]


def takes(wanted: MessageFilter, one: DelayedMessages, left_out: Warn) -> bool:
    """Whether a filter selects a waiting message; its queue is that of the target.

    ``left_out`` is called with a sentence if the filter needs a body that cannot be unpacked; the
    message is then not selected.
    """
    message = one.message
    if wanted.queues is not None and one.queue_id not in wanted.queues:
        return False
    if wanted.from_timestamp is not None and message.store_timestamp < wanted.from_timestamp:
        return False
    if wanted.to_timestamp is not None and message.store_timestamp >= wanted.to_timestamp:
        return False
    try:
        return wanted.predicate is None or wanted.predicate(message)
    except BodyError as error:
        left_out(f"left out {error}")
        return False
