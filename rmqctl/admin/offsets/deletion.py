"""Forgetting the offsets of groups."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from broker.validation import check_group
from rmqctl.admin.changes import JavaCheck, Warn, no_warning
from rmqctl.admin.known_groups import check_known_group
from rmqctl.errors import NotFound

from .change import MoveRows, OffsetMove
from .plan import Describer, steps_of
from .queues import TopicChoice, TopicQueues, check_queue_ids, check_queues, with_progress
from .reset_targets import to_nothing
from .rows import DoneMove, PlannedMove
from .snapshot import OffsetSnapshot

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView


def delete(
    view: "StoreView",
    broker: "Broker",
    *,
    groups: Sequence[str],
    topics: Sequence[TopicChoice] | None,
    queues: Collection[int] | None = None,
    no_live: bool = False,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    java_check: JavaCheck | None = None,
) -> OffsetMove:
    """Forget offsets of groups: a group without one begins as a new group does.

    ``topics`` None: all in which the groups have an offset, retry topics included; a topic may be
    gone. ``queues`` narrows that to these queue ids. NotFound if there is no such offset, and for a
    group, topic or queue of which the store has no trace. Rows are PlannedMove, then with
    ``applied``.
    """
    for group in groups:
        check_group(group)
    snapshot = OffsetSnapshot.read(view, broker, now_ms=now_ms, warn=warn, java_check=java_check)
    _check_there(snapshot, groups, topics or None, queues)
    chosen = [
        queue
        for queue in with_progress(snapshot.progress, groups, topics or None)
        if queues is None or queue.queue_id in queues
    ]
    if not chosen:
        names = ", ".join(map(str, topics or ()))
        where = f" in {names}" if names else ""
        raise NotFound(f"group {', '.join(groups)} has no such progress{where}")
    steps = steps_of(snapshot, chosen, to_nothing, clamp=False)
    describe = Describer(view, broker.name, snapshot.now_ms, full=True)
    rows = MoveRows(PlannedMove, describe.planned, DoneMove, describe.done)
    return OffsetMove(snapshot, steps, rows, no_live=no_live)


def _check_there(
    snapshot: OffsetSnapshot,
    groups: Sequence[str],
    topics: Sequence[TopicChoice] | None,
    queues: Collection[int] | None,
) -> None:
    """NotFound for a name, or a queue id, that nothing in the store has."""
    for group in groups:
        if group not in snapshot.groups:
            check_known_group(snapshot.view, snapshot.broker, group)
    read: dict[str, list[int]] = {}
    for queue in with_progress(snapshot.progress, groups, None):
        read.setdefault(queue.topic, []).append(queue.queue_id)
    known = TopicQueues(snapshot.view, snapshot.broker)
    there: dict[str, list[int]] = {}
    for choice in map(TopicChoice, sorted(read)) if topics is None else topics:
        there[choice.topic] = known.of(choice.topic, read.get(choice.topic, ()))
        check_queues(choice, there[choice.topic])
    if queues is not None and there:
        check_queue_ids(there, queues)
