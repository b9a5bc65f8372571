"""``offset reset``: what its options ask for, and how that becomes a plan."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.validation import check_group
from rmqctl.errors import CliError, NotFound, Refused, UsageProblem
from rmqctl.parse.durations import parse_duration
from rmqctl.parse.lists import parse_queues

from . import reset_targets
from .apply import ChangeForm, ChangeRun
from .boundaries import parse_boundary, warn_of_future
from .plan import Describer, Step, steps_of
from .plan_files import check_ending, check_expected, expectation, expects, read_wishes, write_plan
from .queues import (
    QueueId,
    TopicChoice,
    TopicQueues,
    check_queues,
    chosen_places,
    committed,
    parse_topic_choice,
    stands,
)
from .reset_targets import Scope
from .rows import DoneMove, PlannedMove

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli
    from storage.configs.progress_table import ProgressTable
    from storage.format.message import MessageExt
    from storage.read.by_time import Boundary

SCOPES: Final = (
    *("--to-datetime", "--by-duration", "--to-earliest", "--to-latest", "--to-current"),
    *("--to-offset", "--shift-by", "--to-group", "--from-file", "--to-message"),
)


class GroupSelection(NamedTuple):
    """Which groups and topics are meant; None stands for all."""

    groups: list[str] | None
    topics: list[TopicChoice] | None
    queues: tuple[int, ...] | None = None
    """Of all these topics only these queues."""

    @classmethod
    def parse(
        cls,
        cli: "Cli",
        groups: Sequence[str] | None,
        topics: Sequence[str] | None,
        *,
        all_groups: bool,
        all_topics: bool,
        queues: str | None = None,
        from_file: bool = False,
    ) -> "GroupSelection":
        """Read the options. UsageProblem unless each of both is said in exactly one way; a file
        may say it instead."""
        if bool(groups) + all_groups != 1 and not (from_file and not (groups or all_groups)):
            raise UsageProblem("name groups with --group, or take all with --all-groups")
        if bool(topics) + all_topics != 1 and not (from_file and not (topics or all_topics)):
            raise UsageProblem("name topics with --topic, or take all with --all-topics")
        for group in groups or ():
            check_group(group)
        choices = [cli.parsed("--topic", parse_topic_choice, topic) for topic in topics or ()]
        numbers = None if queues is None else cli.parsed("--queue", parse_queues, queues)
        return cls([*dict.fromkeys(groups)] if groups else None, choices or None, numbers)


class ResetGuards(NamedTuple):
    """What is allowed, and what is shown."""

    no_forward: bool = False
    no_backward: bool = False
    clamp: bool = True
    no_live: bool = False
    full: bool | None = None
    """The preview: None counts tags only if that is cheap."""
    export: Path | None = None
    expect: str | None = None


def carry_out_reset(
    cli: "Cli",
    broker: "EmbeddedBroker",
    selection: GroupSelection,
    scope_name: str,
    scope_value: str | None,
    boundary: "Boundary",
    how: ResetGuards,
    *,
    execute_by_default: bool = False,
) -> None:
    """Plan, show, ask, do. Raises what the exit codes of the contract stand for."""
    if how.export is not None:
        check_ending(how.export)
    change_run = ChangeRun(cli, broker, execute_by_default=execute_by_default)
    for group in selection.groups or ():
        if group not in change_run.groups:
            cli.warn(f"group {group} has no progress anywhere yet: it gets its first")
    places, scope = _planned(cli, broker, change_run, selection, scope_name, scope_value, boundary)
    if not places:
        raise NotFound(f"{_whose(selection)} of {broker.view.root}")
    if selection.queues is not None:
        places = _in_queues(places, selection.queues)
    steps = steps_of(stands(broker, change_run.progress, places), scope, clamp=how.clamp)
    expected: Mapping[QueueId, int | None] = {}
    if how.expect is not None:
        expected = expectation(how.expect, steps)
        check_expected(expected, steps)
    describe = Describer(broker.view, broker.name, cli.now_ms, full=how.full is not False)
    form = ChangeForm(PlannedMove, describe.planned, DoneMove, describe.done)
    refusal = _refusal(steps, how)
    change_run.carry_out(
        steps,
        form,
        no_live=how.no_live,
        full=how.full,
        check=expects(expected),
        refusal=refusal,
        save=None if how.export is None else _saver(how.export),
    )


def _whose(selection: GroupSelection) -> str:
    """What there is none of."""
    groups = (
        "no group has"
        if selection.groups is None
        else f"group {', '.join(selection.groups)} has no"
    )
    topics = [choice.topic for choice in selection.topics or ()]
    where = f"topic {', '.join(topics)}" if topics else "any topic"
    return f"{groups} progress in {where}"


def _in_queues(places: Sequence[QueueId], queues: Sequence[int]) -> list[QueueId]:
    """Those of some queues. NotFound for a queue that none of their topics has."""
    there = {place.queue_id for place in places}
    missing = [queue_id for queue_id in queues if queue_id not in there]
    if missing:
        topics = ", ".join(sorted({place.topic for place in places}))
        raise NotFound(f"--queue: {topics} has no queue {_listed(missing)}, but {_listed(there)}")
    return [place for place in places if place.queue_id in queues]


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _saver(path: Path) -> "Callable[[Sequence[PlannedMove]], str]":
    def save(rows: Sequence[PlannedMove]) -> str:
        write_plan(path, rows)
        return (
            f"saved: 'rmqctl offset reset --from-file {path} --expect {path} --execute' carries "
            "it out if nobody has moved anything by then"
        )

    return save


def _planned(
    cli: "Cli",
    broker: "EmbeddedBroker",
    change_run: ChangeRun,
    selection: GroupSelection,
    name: str,
    value: str | None,
    boundary: "Boundary",
) -> tuple[list[QueueId], Scope]:
    """The queues that are meant, and where they go."""
    progress, view = change_run.progress, broker.view
    if name == "--from-file":
        wishes = read_wishes(Path(value or ""), selection.groups, selection.topics)
        _check_queues(broker, progress, wishes)
        return sorted(wishes), reset_targets.as_planned(wishes)
    messages: Sequence[MessageExt] = ()
    if name == "--to-message":
        messages = _messages(cli, broker, value or "", selection.topics)
        if selection.topics is None:
            selection = selection._replace(topics=[TopicChoice(m.topic) for m in messages])
    places = chosen_places(broker, progress, selection.groups, selection.topics)
    match name:
        case "--to-datetime":
            moment = cli.time(name, value or "")
            warn_of_future(cli, name, moment, boundary)
            scope = reset_targets.to_time(view, moment, boundary, cli.now_ms)
        case "--by-duration":
            back = cli.parsed(name, parse_duration, value or "")
            scope = reset_targets.to_time(view, cli.now_ms - back, boundary)
        case "--to-earliest":
            scope = reset_targets.to_earliest
        case "--to-latest":
            scope = reset_targets.to_latest
        case "--to-current":
            scope = reset_targets.to_current
        case "--to-offset":
            scope = reset_targets.to_offset(cli.parsed(name, _offset, value or ""))
        case "--shift-by":
            scope = reset_targets.shift_by(cli.parsed(name, _shift, value or ""))
        case "--to-group":
            other = value or ""
            check_group(other)
            if other not in change_run.groups:
                raise NotFound(f"group {other} has no progress in {view.root}")
            scope = reset_targets.to_group(progress, other)
        case _:
            scope = reset_targets.to_messages(view, messages, boundary)
    return places, scope


def _messages(
    cli: "Cli", broker: "EmbeddedBroker", message_id: str, topics: "list[TopicChoice] | None"
) -> "list[MessageExt]":
    """The first message with an id in each topic that is meant. NotFound if a topic has none."""
    from rmqctl.message.facts import with_id

    first: dict[str, MessageExt] = {}
    for message in with_id(cli, broker.view, message_id, None):
        first.setdefault(message.topic, message)
    if topics is None:
        return list(first.values())
    for choice in topics:
        if choice.topic not in first:
            raise NotFound(f"topic {choice.topic} has no message with the id {message_id}")
    return [first[choice.topic] for choice in topics]


def _check_queues(
    broker: "EmbeddedBroker", progress: "ProgressTable", wishes: Mapping[QueueId, int | None]
) -> None:
    """NotFound for a queue of a file that does not exist; it does where the group has progress,
    so what was exported can be imported."""
    by_topic: dict[str, set[int]] = {}
    for place in wishes:
        check_group(place.group)
        if committed(progress.get(*place.key)) is None:
            by_topic.setdefault(place.topic, set()).add(place.queue_id)
    there = TopicQueues(broker)
    for topic, queues in by_topic.items():
        check_queues(TopicChoice(topic, tuple(sorted(queues))), there.of(topic))


def _refusal(steps: Sequence[Step], how: ResetGuards) -> CliError | None:
    """What the options forbid about a plan."""
    for step in steps:
        place, low, high = step.stand.place, step.stand.low, step.stand.high
        distance, target = step.distance or 0, step.target
        if how.no_forward and distance > 0:
            return Refused(f"{place} would go forward by {distance}, and --no-forward was given")
        if how.no_backward and distance < 0:
            return Refused(f"{place} would go back by {-distance}, and --no-backward was given")
        outside = target is not None and not low <= target <= high
        if not how.clamp and outside and not step.reset_target.stays:
            return Refused(
                f"{place} has messages {low} to {high - 1}, so {target} is outside of it, and "
                "--no-clamp was given"
            )
    return None


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not an offset (a number from 0 on)")
    return int(text)


def _shift(text: str) -> int:
    digits = text.removeprefix("+").removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or text.startswith("+-"):
        raise ValueError(f"{text!r} is not a number of messages (such as -100 or +5)")
    return int(text)


def parse_rule(cli: "Cli", text: str) -> "Boundary":
    """The value of --boundary."""
    return cli.parsed("--boundary", parse_boundary, text)
