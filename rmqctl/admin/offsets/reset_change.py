"""Moving groups to a destination, and to given offsets."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.validation import check_group
from rmqctl.admin.changes import JavaCheck, Warn, no_warning
from rmqctl.admin.known_groups import is_known_group
from rmqctl.errors import CliError, NotFound, Refused

from .change import MoveRows, OffsetMove
from .move import ForbiddenWays
from .plan import Describer, Step, steps_of
from .queues import (
    QueueId,
    TopicChoice,
    TopicQueues,
    check_queue_ids,
    check_queues,
    chosen_queues,
    committed,
    no_progress,
)
from .reset_targets import Destination, to_offsets
from .rows import DoneMove, PlannedMove
from .snapshot import OffsetSnapshot

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView


def reset(
    view: "StoreView",
    broker: "Broker",
    to: Destination,
    *,
    groups: Sequence[str] | None,
    topics: Sequence[TopicChoice] | None,
    among: Collection[str] | None = None,
    queues: Collection[int] | None = None,
    clamp: bool = True,
    no_forward: bool = False,
    no_backward: bool = False,
    no_live: bool = False,
    new_groups: bool = False,
    full: bool | None = None,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    java_check: JavaCheck | None = None,
) -> OffsetMove:
    """Move groups to a destination. Rows are PlannedMove, then with ``applied``.

    ``groups`` None: all that have an offset. ``topics`` None: all that the groups read, but retry
    topics and dead letters, which count only if they are named; ``among`` narrows these topics,
    as ``to_messages`` has a place only in topics of its messages. ``queues`` narrows all topics to
    these queue ids. ``clamp`` cuts a target to what its queue has; else a target outside of it is a
    refusal, as is a queue that goes the way that ``no_forward`` or ``no_backward`` forbids, in the
    plan or from where a running consumer has brought it until the write.
    A group in ``groups`` of which the store has no trace is NotFound, unless ``new_groups``.
    ``full`` reads messages and counts tags; None: only where that is cheap (20 million messages).
    The other arguments and errors are those of all functions of this package.
    """
    snapshot = OffsetSnapshot.read(view, broker, now_ms=now_ms, warn=warn, java_check=java_check)
    check_new_groups(snapshot, groups or (), warn, allowed=new_groups)
    chosen = chosen_queues(view, broker, snapshot.progress, groups, topics, among)
    if not chosen:
        names = among if topics is None else [choice.topic for choice in topics]
        raise NotFound(f"{no_progress(groups, names)} of {view.root}")
    return _change(
        *(snapshot, chosen, to, queues),
        clamp=clamp,
        no_forward=no_forward,
        no_backward=no_backward,
        no_live=no_live,
        full=full,
    )


def import_offsets(
    view: "StoreView",
    broker: "Broker",
    offsets: Mapping[QueueId, int | None],
    *,
    groups: Sequence[str] | None = None,
    queues: Collection[int] | None = None,
    clamp: bool = True,
    no_forward: bool = False,
    no_backward: bool = False,
    no_live: bool = False,
    new_groups: bool = False,
    full: bool | None = None,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    java_check: JavaCheck | None = None,
) -> OffsetMove:
    """Move each queue of ``offsets`` to its offset, None to no offset.

    A queue must exist, or the group must have an offset in it: so what was exported can be
    imported. ``groups`` are those that the caller named; each without an offset is warned of. For
    the rest see :func:`reset`.
    """
    snapshot = OffsetSnapshot.read(view, broker, now_ms=now_ms, warn=warn, java_check=java_check)
    check_new_groups(snapshot, groups or (), warn, allowed=new_groups)
    _check_queues(snapshot, offsets)
    return _change(
        *(snapshot, sorted(offsets), to_offsets(offsets), queues),
        clamp=clamp,
        no_forward=no_forward,
        no_backward=no_backward,
        no_live=no_live,
        full=full,
    )


def check_new_groups(
    snapshot: OffsetSnapshot, groups: Iterable[str], warn: Warn, *, allowed: bool
) -> None:
    """Warn of each group that has no offset yet. NotFound for one of which the store has no trace,
    unless it is ``allowed``. InvalidNameError for a name that cannot be one."""
    for group in groups:
        check_group(group)
        if group not in snapshot.groups:
            if not (allowed or is_known_group(snapshot.view, snapshot.broker, group)):
                raise NotFound(
                    f"group {group} does not exist in {snapshot.root}; --new-group gives a new "
                    "group its first offsets"
                )
            warn(f"group {group} has no progress anywhere yet: it gets its first")


def _change(
    snapshot: OffsetSnapshot,
    chosen: Sequence[QueueId],
    to: Destination,
    queues: Collection[int] | None,
    *,
    clamp: bool,
    no_forward: bool,
    no_backward: bool,
    no_live: bool,
    full: bool | None,
) -> OffsetMove:
    if queues is not None:
        chosen = _in_queues(chosen, queues)
    steps = steps_of(snapshot, chosen, to, clamp=clamp)
    name = snapshot.broker.name
    describe = Describer(snapshot.view, name, snapshot.now_ms, full=full is not False)
    return OffsetMove(
        snapshot,
        steps,
        MoveRows(PlannedMove, describe.planned, DoneMove, describe.done),
        no_live=no_live,
        forbidden=ForbiddenWays(no_forward=no_forward, no_backward=no_backward),
        full=full,
        refusals=() if clamp else _outside(steps),
    )


def _in_queues(chosen: Sequence[QueueId], queues: Collection[int]) -> list[QueueId]:
    """The chosen ones with some queue ids. NotFound for an id that no topic has."""
    there: dict[str, list[int]] = {}
    for queue in chosen:
        there.setdefault(queue.topic, []).append(queue.queue_id)
    check_queue_ids(there, queues)
    return [queue for queue in chosen if queue.queue_id in queues]


def _check_queues(snapshot: OffsetSnapshot, offsets: Mapping[QueueId, int | None]) -> None:
    """NotFound for a queue that neither exists nor has an offset of the group."""
    by_topic: dict[str, set[int]] = {}
    for queue in offsets:
        check_group(queue.group)
        if committed(snapshot.progress.get(*queue.key)) is None:
            by_topic.setdefault(queue.topic, set()).add(queue.queue_id)
    there = TopicQueues(snapshot.view, snapshot.broker)
    for topic, queues in by_topic.items():
        check_queues(TopicChoice(topic, tuple(sorted(queues))), there.of(topic))


def _outside(steps: Sequence[Step]) -> Iterator[CliError]:
    """A refusal for each target outside of what its queue has."""
    for step in steps:
        queue, low, high = step.position.queue, step.position.low, step.position.high
        outside = step.target is not None and not low <= step.target <= high
        if outside and not step.reset_target.stays:
            yield Refused(
                f"{queue} has messages {low} to {high - 1}, so {step.target} is outside of it, and "
                "--no-clamp was given"
            )
