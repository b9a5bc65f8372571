"""What moving offsets would mean, queue by queue: the rows of a plan."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.lag.queue_position import QueuePosition, oldest_unread_timestamp, unread_bytes
from storage.read.by_time import Boundary

from .queues import GroupPosition, QueueId, positions
from .reset_targets import Destination, ResetTarget, clamped
from .rows import DoneMove, PlannedMove

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .snapshot import OffsetSnapshot

_ORDER: Final = (Boundary.LOWER, Boundary.UPPER, Boundary.NEAREST49)


class Step(NamedTuple):
    """One queue of a plan: where the group is in it and where it goes."""

    position: GroupPosition
    reset_target: ResetTarget

    @property
    def target(self) -> int | None:
        """The offset afterwards, None for no progress."""
        return self.position.offset if self.reset_target.stays else self.reset_target.offset

    @property
    def distance(self) -> int | None:
        """Messages passed over, below 0 read again; None without both ends."""
        if self.position.offset is None or self.target is None:
            return None
        return self.target - self.position.offset

    @property
    def span(self) -> tuple[int, int]:
        """The messages between both that are still there: the first, and the end."""
        low, high = self.position.low, self.position.high
        if self.distance is None:
            return low, low
        ends = sorted((self.position.offset or 0, self.target or 0))
        first, end = (min(max(offset, low), high) for offset in ends)
        return first, end


def steps_of(
    snapshot: "OffsetSnapshot", queues: Iterable[QueueId], to: Destination, *, clamp: bool
) -> list[Step]:
    """Where each queue goes; with ``clamp`` never beyond what it has."""
    steps = []
    for position in positions(snapshot.view, snapshot.broker, snapshot.progress, queues):
        reset_target = to(snapshot, position)
        steps.append(Step(position, clamped(reset_target, position) if clamp else reset_target))
    return steps


def targets_of(steps: Iterable[Step]) -> dict[QueueId, int | None]:
    """What is to be written: queues that are left alone are not part of it."""
    return {step.position.queue: step.target for step in steps if not step.reset_target.stays}


def _note(step: Step) -> str | None:
    notes = (step.reset_target.note, step.position.note)
    return "; ".join(note for note in notes if note) or None


class Describer:
    """Makes rows of steps. With ``full`` it reads messages and sums up their bytes."""

    def __init__(self, view: "StoreView", broker: str, now_ms: int, *, full: bool) -> None:
        self._view = view
        self._broker = broker
        self._now = now_ms
        self._full = full

    def planned(self, step: Step) -> PlannedMove:
        """The row of a plan."""
        queue, offset, _, low, high, _ = step.position
        target = step.target
        message = self._message(step) if self._full else None
        lower, upper, nearest = self._by_time(step)
        return PlannedMove(
            queue.group,
            queue.topic,
            self._broker,
            queue.queue_id,
            offset,
            target,
            step.distance,
            self.lands_on(step),
            QueuePosition(low, offset, high).lag,
            QueuePosition(low, target, high).lag,
            self._age(step),
            _note(step),
            self._bytes(step) if self._full else None,
            message.keys[0] if message and message.keys else None,
            message.msg_id if message else None,
            lower,
            upper,
            nearest,
        )

    def done(self, step: Step, plan: PlannedMove, old: int | None, applied: bool | None) -> Any:
        """The row of a result; ``old`` is what was committed right before the write."""
        if old != plan.old_offset:
            # A consumer went on since the plan, maybe beyond the end that there was then.
            high = max(step.position.high, old or 0)
            moved = step._replace(position=step.position._replace(offset=old, high=high))
            plan = plan._replace(
                old_offset=old,
                move=moved.distance,
                lag_old=QueuePosition(step.position.low, old, high).lag,
                lag_new=QueuePosition(step.position.low, step.target, high).lag,
                note=_note(moved),
                bytes=self._bytes(moved) if self._full else None,
            )
        return DoneMove(*plan, applied)

    def lands_on(self, step: Step) -> int | None:
        """When the message was stored that is read next; None at the end."""
        target = step.target
        if target is None:
            return None
        return self._view.store_timestamp(
            step.position.queue.topic, step.position.queue.queue_id, target
        )

    def lower(self, step: Step) -> int | None:
        """The first message at or after the time that was asked for."""
        return self._by_time(step, (Boundary.LOWER,))[0]

    def _by_time(
        self, step: Step, boundaries: tuple[Boundary, ...] = _ORDER
    ) -> tuple[int | None, ...]:
        timestamp = step.reset_target.timestamp
        if timestamp is None:
            return (None,) * len(boundaries)
        _, topic, queue_id = step.position.queue
        find = self._view.offset_in_queue_by_time
        return tuple(find(topic, queue_id, timestamp, boundary) for boundary in boundaries)

    def _message(self, step: Step) -> "MessageExt | None":
        target = step.target
        if target is None:
            return None
        _, topic, queue_id = step.position.queue
        unit = self._view.unit(topic, queue_id, target)
        return unit and self._view.message_of_unit(topic, queue_id, target, unit)

    def _age(self, step: Step) -> int | None:
        queue, _, _, low, high, _ = step.position
        what = QueuePosition(low, step.target, high)
        if what.lag is None:
            return None
        if what.first_unread is None:
            return 0
        stored = oldest_unread_timestamp(self._view, queue.topic, queue.queue_id, what)
        return None if stored is None else max(0, self._now - stored)

    def _bytes(self, step: Step) -> int | None:
        if step.distance is None:
            return None
        first, end = step.span
        if first == end:
            return 0
        queue = step.position.queue
        return unread_bytes(self._view, queue.topic, queue.queue_id, (first,), end)[first]
