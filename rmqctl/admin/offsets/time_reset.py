"""The rule of RocketMQ's resetOffsetByTime (ResetOffsetByTimeCommand of 4.9.8)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.validation import check_group
from rmqctl.admin.changes import JavaCheck, Warn, no_warning
from storage.read.by_time import Boundary

from .change import MoveRows, OffsetMove
from .plan import Describer, Step, steps_of
from .queues import TopicChoice, chosen_queues
from .reset_change import check_new_groups
from .reset_targets import check_is_ms, to_any_time, to_latest
from .rows import ResetByTimeRow
from .snapshot import OffsetSnapshot

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView


class ResetByTime(NamedTuple):
    """What one call asks for. ``timestamp`` None: the end of each queue (mqadmin's now, -1)."""

    group: str
    choice: TopicChoice
    timestamp: int | None
    boundary: Boundary
    force: bool

    def steps(self, snapshot: OffsetSnapshot) -> list[Step]:
        """Where each queue goes. NotFound for an unknown topic or queue."""
        view, broker, progress = snapshot.view, snapshot.broker, snapshot.progress
        queues = chosen_queues(view, broker, progress, [self.group], [self.choice])
        to = to_latest if self.timestamp is None else to_any_time(self.timestamp, self.boundary)
        return [self._kept(step) for step in steps_of(snapshot, queues, to, clamp=False)]

    def _kept(self, step: Step) -> Step:
        """Without force an offset goes back or stays (ConsumerManageProcessor's rule)."""
        old, target = step.position.offset, step.target
        if self.force or (old is not None and target is not None and target <= old):
            return step
        why = "kept: it has no progress" if old is None else f"kept: {target} is ahead"
        return step._replace(reset_target=step.reset_target._replace(note=why, stays=True))


def reset_by_time(
    view: "StoreView",
    broker: "Broker",
    group: str,
    topic: str,
    timestamp: int | None,
    *,
    queues: Sequence[int] | None = None,
    boundary: Boundary = Boundary.NEAREST49,
    force: bool = True,
    no_live: bool = False,
    new_groups: bool = False,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    java_check: JavaCheck | None = None,
) -> OffsetMove:
    """Move a group to a time (epoch ms) in a topic, as RocketMQ 4.9 does; None: to the end.

    Every queue of the topic is moved, one that the group never committed included; ``queues``
    narrows that. Without ``force`` a queue goes back or stays. A group of which the store has no
    trace is NotFound, unless ``new_groups``. Rows are ResetByTimeRow. UsageProblem for a time other
    than 0 before 1990 or after 2200.
    """
    check_group(group)
    if timestamp is not None:
        check_is_ms(timestamp)
    choice = TopicChoice(topic, None if queues is None else tuple(queues))
    wanted = ResetByTime(group, choice, timestamp, boundary, force)
    snapshot = OffsetSnapshot.read(view, broker, now_ms=now_ms, warn=warn, java_check=java_check)
    check_new_groups(snapshot, [group], warn, allowed=new_groups)
    describe = Describer(view, broker.name, snapshot.now_ms, full=False)

    def planned(step: Step) -> ResetByTimeRow:
        lower = describe.lower(step)
        notes = [note for note in (step.reset_target.note, step.position.note) if note]
        if not step.reset_target.stays and lower is not None and lower != step.target:
            notes.append(f"lower bound is {lower}")
        return ResetByTimeRow(
            broker.name,
            step.position.queue.queue_id,
            step.position.offset,
            step.target,
            describe.lands_on(step),
            "; ".join(notes) or None,
        )

    def done(_: Step, row: Any, old: int | None, applied: bool | None) -> Any:
        return row._replace(old_offset=old, note="not done" if applied is False else row.note)

    rows = MoveRows(ResetByTimeRow, planned, ResetByTimeRow, done)
    return OffsetMove(snapshot, wanted.steps(snapshot), rows, no_live=no_live)
