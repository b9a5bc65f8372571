"""Offsets that belong to nothing, and retry topics and queues without settings."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.admin.changes import JavaCheck, Warn, no_warning
from storage.format.message import (
    LMQ_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    is_system_topic,
    retry_topic,
)

from .change import MoveRows, OffsetMove
from .orphan_rows import DoneOrphan, Orphan, Problem
from .plan import Step
from .queues import GroupPosition, positions, with_progress
from .reset_targets import ResetTarget
from .snapshot import OffsetSnapshot

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView


class _Found(NamedTuple):
    """An orphan, and how its offset is put right; None where moving an offset does not help."""

    row: Orphan
    step: Step | None


def orphans(
    view: "StoreView",
    broker: "Broker",
    *,
    now_ms: int | None = None,
    warn: Warn = no_warning,
) -> list[Orphan]:
    """What belongs to nothing: offsets by group, topic and queue, then topics."""
    snapshot = OffsetSnapshot.read(view, broker, now_ms=now_ms, warn=warn)
    return [item.row for item in _all(snapshot)]


def fix_orphans(
    view: "StoreView",
    broker: "Broker",
    *,
    no_live: bool = False,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    java_check: JavaCheck | None = None,
) -> OffsetMove:
    """Forget offsets in what is gone, and move those outside of their queue into it.

    ``warn`` also gets how many orphans are no offsets. Rows are Orphan, then with ``applied``.
    """
    snapshot = OffsetSnapshot.read(view, broker, now_ms=now_ms, warn=warn, java_check=java_check)
    found = list(_all(snapshot))
    fixable = {item.step.position.queue: item.row for item in found if item.step is not None}
    steps = [item.step for item in found if item.step is not None]
    left = len(found) - len(steps)
    if left:
        warn(f"{left} of {len(found)} are no progress: 'rmqctl offset orphans' says what to do")
    rows = MoveRows(
        Orphan,
        lambda step: fixable[step.position.queue],
        DoneOrphan,
        lambda _, row, old, applied: DoneOrphan(*row._replace(committed_offset=old), applied),
    )
    return OffsetMove(snapshot, steps, rows, no_live=no_live)


def _all(snapshot: OffsetSnapshot) -> Iterator[_Found]:
    yield from _of_offsets(snapshot)
    yield from _of_topics(snapshot)


def _of_offsets(snapshot: OffsetSnapshot) -> Iterator[_Found]:
    view, broker, progress = snapshot.view, snapshot.broker, snapshot.progress
    queues = with_progress(progress, snapshot.groups, None)
    known, stored = broker.topics(), set(view.queues())
    topics = {topic for topic, _ in stored}
    for position in positions(view, broker, progress, queues):
        queue, offset = position.queue, position.offset
        if offset is None:
            continue
        config = known.get(queue.topic)
        if config is None and queue.topic not in topics:
            yield _found(position, Problem.TOPIC_GONE, None)
        elif (queue.topic, queue.queue_id) not in stored and (
            config is None or queue.queue_id >= max(config.read_queue_nums, config.write_queue_nums)
        ):
            yield _found(position, Problem.QUEUE_GONE, None)
        elif offset > position.high:
            yield _found(position, Problem.AHEAD, position.high)
        elif offset < position.low:
            yield _found(position, Problem.LOST, position.low)


def _found(position: GroupPosition, problem: Problem, target: int | None) -> _Found:
    gone = target is None
    row = Orphan(
        position.queue.group,
        position.queue.topic,
        position.queue.queue_id,
        position.offset,
        None if gone else position.low,
        None if gone else position.high,
        problem,
        "delete the progress" if gone else f"move to {target}",
        target,
    )
    return _Found(row, Step(position, ResetTarget(target)))


def _of_topics(snapshot: OffsetSnapshot) -> Iterator[_Found]:
    """Retry topics of unknown groups, and queues of topics that are not set up."""
    view, broker = snapshot.view, snapshot.broker
    known, groups = broker.topics(), {*snapshot.groups, *broker.groups()}
    for topic in sorted(known):
        group = topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
        if topic == retry_topic(group) and group not in groups:
            fix = f"rmqctl topic delete {topic}"
            yield _Found(_row(group, topic, Problem.NO_GROUP, fix), None)
    set_up = view.topics()  # the broker's list also has topics that only queues tell of
    for topic in sorted({topic for topic, _ in view.queues()} - set_up.keys()):
        if topic.startswith(LMQ_PREFIX) or is_system_topic(topic):
            continue  # these have no settings
        yield _Found(_row(None, topic, Problem.NO_TOPIC, f"rmqctl topic create {topic}"), None)


def _row(group: str | None, topic: str, problem: Problem, fix: str) -> Orphan:
    return Orphan(group, topic, None, None, None, None, problem, fix, None)
