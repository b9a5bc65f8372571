"""Facts about the messages that a group will consume again."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from analytics.lag.delayed import DelayedMessages, copies, levels, waiting
from broker.retry.failure_reason import FAILURE_CLIENT
from storage.format.errors import BodyError
from storage.format.message import SCHEDULE_TOPIC, dlq_topic, retry_topic

from .failures import failed_timestamp, origin_of, reason_text
from .known_groups import check_known_group
from .queues import QueueScan
from .rows import RetryRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.filter_options import MessageFilter
    from storage.format.message import MessageExt


class Retries:
    """The retries of one group at ``now_ms``. NotFound for an unknown group."""

    def __init__(self, broker: "EmbeddedBroker", group: str, now_ms: int) -> None:
        check_known_group(broker, group)
        self.group = group
        self.topic = retry_topic(group)
        self.view = broker.view
        self._now_ms = now_ms
        self._committed = broker.consumer_offsets(group).get((group, self.topic), {})
        self.unreadable = 0
        self.bodies: Sequence[str] = ()

    def rows(
        self, wanted: "MessageFilter", tell: Callable[[str], object], *, consumed: bool
    ) -> Iterator[RetryRow]:
        """Waiting retries by due time, then those in the retry topic.

        With ``consumed``, also those in the retry topic that the group has read past. ``tell``: see
        takes.
        """
        held = [one for one in self.waiting() if takes(wanted, one, tell)]
        held.sort(key=lambda one: one.due_timestamp)
        yield from (self._waiting_row(one) for one in held)
        scan = QueueScan(self.view, self.topic, wanted, {} if consumed else self._committed)
        for message in scan.messages():
            state = self._state(message)
            if consumed or state == "READY":
                yield self._row(message, state, message.store_timestamp, self._given_back(message))
        self.unreadable, self.bodies = scan.unreadable, scan.bodies

    def waiting(self) -> Iterator[DelayedMessages]:
        """Retries that wait in the delay topic, by level; including dead letters on their way."""
        targets = (self.topic, dlq_topic(self.group))
        for level in levels(self.view):
            for one in waiting(self.view, level):
                if one.topic in targets:
                    yield one

    def ready(self) -> Iterator["MessageExt"]:
        """Retries in the retry topic that the group has not read past."""
        yield from QueueScan(self.view, self.topic, None, self._committed).messages()

    def _state(self, message: "MessageExt") -> str:
        committed = self._committed.get(message.queue_id)
        read_past = committed is not None and message.queue_offset < committed
        return "CONSUMED" if read_past else "READY"

    def _given_back(self, message: "MessageExt") -> int | None:
        """When a delivered message was sent back: store time of its record in the delay topic."""
        said = failed_timestamp(message)
        if said is not None:
            return said
        return next(
            (
                copy.store_timestamp
                for copy in copies(self.view, SCHEDULE_TOPIC, message)
                if copy.reconsume_times == message.reconsume_times
            ),
            None,
        )

    def _waiting_row(self, one: DelayedMessages) -> RetryRow:
        message = one.message
        failed = failed_timestamp(message)
        state = "WAITING" if one.due_timestamp > self._now_ms else "OVERDUE"
        at = message.store_timestamp if failed is None else failed
        return self._row(message, state, one.due_timestamp, at)

    def _row(
        self, message: "MessageExt", state: str, due: int | None, failed: int | None
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
        )


def takes(wanted: "MessageFilter", one: DelayedMessages, tell: Callable[[str], object]) -> bool:
    """Whether a filter selects a waiting message; its queue is that of the target.

    ``tell`` is called with a sentence if the filter needs a body that cannot be unpacked; the
    message is then left out.
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
        tell(f"left out {error}")
        return False
