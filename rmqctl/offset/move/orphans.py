"""``offset orphans``: progress that belongs to nothing, and what else was left behind."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from broker.validation import is_system_topic
from storage.format.message import LMQ_PREFIX, RETRY_GROUP_TOPIC_PREFIX, retry_topic

from .apply import ChangeForm, ChangeRun
from .orphan_rows import DoneOrphan, Orphan, Problem
from .plan import Step
from .queues import GroupPosition, stands, with_progress
from .reset_targets import ResetTarget

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli


class Found(NamedTuple):
    """An orphan, and how progress is put right; None if that is nothing that progress can do."""

    row: Orphan
    step: Step | None


def orphans(cli: "Cli", broker: "EmbeddedBroker", *, fix: bool) -> None:
    """Print what was left behind; with ``fix`` put the progress among it right."""
    change_run = ChangeRun(cli, broker, execute_by_default=fix)
    found = [*_of_progress(broker, change_run), *_of_topics(broker, change_run)]
    if not fix:
        cli.rows(Orphan, [item.row for item in found])
        return
    fixable = {item.step.stand.place: item.row for item in found if item.step is not None}
    steps = [item.step for item in found if item.step is not None]
    left = len(found) - len(steps)
    if left:
        cli.warn(f"{left} of {len(found)} are no progress: 'rmqctl offset orphans' says what to do")
    form = ChangeForm(
        Orphan,
        lambda step: fixable[step.stand.place],
        DoneOrphan,
        lambda _, row, old, applied: DoneOrphan(*row._replace(committed_offset=old), applied),
    )
    change_run.carry_out(steps, form)


def _of_progress(broker: "EmbeddedBroker", change_run: ChangeRun) -> Iterator[Found]:
    places = with_progress(change_run.progress, change_run.groups, None)
    known, stored = broker.topics(), set(broker.view.queues())
    topics = {topic for topic, _ in stored}
    for stand in stands(broker, change_run.progress, places):
        place, offset = stand.place, stand.offset
        if offset is None:
            continue
        config = known.get(place.topic)
        if config is None and place.topic not in topics:
            yield _found(stand, Problem.TOPIC_GONE, None)
        elif (place.topic, place.queue_id) not in stored and (
            config is None or place.queue_id >= max(config.read_queue_nums, config.write_queue_nums)
        ):
            yield _found(stand, Problem.QUEUE_GONE, None)
        elif offset > stand.high:
            yield _found(stand, Problem.AHEAD, stand.high)
        elif offset < stand.low:
            yield _found(stand, Problem.LOST, stand.low)


def _found(stand: GroupPosition, problem: Problem, target: int | None) -> Found:
    gone = target is None
    row = Orphan(
        stand.place.group,
        stand.place.topic,
        stand.place.queue_id,
        stand.offset,
        None if gone else stand.low,
        None if gone else stand.high,
        problem,
        "delete the progress" if gone else f"move to {target}",
        target,
    )
    return Found(row, Step(stand, ResetTarget(target)))


def _of_topics(broker: "EmbeddedBroker", change_run: ChangeRun) -> Iterator[Found]:
    """Retry topics of groups that nobody knows, and queues of topics that are not set up."""
    known, groups = broker.topics(), {*change_run.groups, *broker.groups()}
    for topic in sorted(known):
        group = topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
        if topic == retry_topic(group) and group not in groups:
            fix = f"rmqctl topic delete {topic}"
            yield Found(_row(group, topic, Problem.NO_GROUP, fix), None)
    set_up = broker.view.topics()  # the broker's own list has topics, too, that only queues tell of
    for topic in sorted({topic for topic, _ in broker.view.queues()} - set_up.keys()):
        if topic.startswith(LMQ_PREFIX) or is_system_topic(topic):
            continue  # these have no settings
        yield Found(_row(None, topic, Problem.NO_TOPIC, f"rmqctl topic create {topic}"), None)


def _row(group: str | None, topic: str, problem: Problem, fix: str) -> Orphan:
    return Orphan(group, topic, None, None, None, None, problem, fix, None)
