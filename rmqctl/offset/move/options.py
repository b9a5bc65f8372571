"""What the options of the commands that move offsets ask for."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.validation import check_group
from rmqctl.admin.offsets import reset_targets
from rmqctl.admin.offsets.queues import TopicChoice, parse_topic_choice
from rmqctl.cli.change_steps import begin_java_check, run_change
from rmqctl.cli.given_file import tell_if_typed
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.parse.lists import parse_queues
from rmqctl.parse.offsets import parse_offset, parse_shift
from storage.parse.durations import parse_duration

from .boundaries import warn_of_future
from .plan_files import check_ending, expectation, read_wishes, write_plan

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.admin.offsets.change import OffsetMove
    from rmqctl.admin.offsets.reset_targets import Destination
    from rmqctl.cli.context import Cli
    from storage.format.message import MessageExt
    from storage.read.by_time import Boundary


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
        """Read the options. UsageProblem unless groups and topics are each given in exactly one
        way; a file may give them instead."""
        if bool(groups) + all_groups != 1 and not (from_file and not (groups or all_groups)):
            raise UsageProblem("name groups, or take all with --all-groups")
        if bool(topics) + all_topics != 1 and not (from_file and not (topics or all_topics)):
            raise no_topics(groups)
        for group in groups or ():
            check_group(group)
        choices = [cli.parsed("--topic", parse_topic_choice, topic) for topic in topics or ()]
        numbers = None if queues is None else cli.parsed("--queue", parse_queues, queues)
        return cls([*dict.fromkeys(groups)] if groups else None, choices or None, numbers)


def no_topics(groups: Sequence[str] | None) -> UsageProblem:
    """Topics are missing, or given in two ways. All words are groups, which is easily forgotten."""
    words = "" if groups is None or len(groups) < 2 else f"; the word {groups[-1]!r} is a group"
    return UsageProblem(f"name topics with --topic, or take all with --all-topics{words}")


class ResetGuards(NamedTuple):
    """What is allowed, and what is shown."""

    no_forward: bool = False
    no_backward: bool = False
    clamp: bool = True
    no_live: bool = False
    new_groups: bool = False
    full: bool | None = None
    """The preview: None counts tags only if that is cheap."""
    export: Path | None = None
    expect: str | None = None


def run_reset(
    cli: "Cli",
    broker: "EmbeddedBroker",
    selection: GroupSelection,
    name: str,
    value: str,
    boundary: "Boundary",
    guards: ResetGuards,
) -> None:
    """Plan what one option of the destination asks for, show it, ask, do it."""
    if guards.export is not None:
        check_ending(guards.export)
    java_check = begin_java_check(cli, broker.view.root)
    change = _planned(cli, broker, selection, name, value, boundary, guards, java_check)
    if guards.expect is not None:
        change.expecting(expectation(guards.expect, change.steps))
    saved = []
    if guards.export is not None:
        path = guards.export
        write_plan(path, change.plan)
        saved.append(
            f"saved: 'rmqctl offset reset --from-file {path} --expect {path}' carries "
            "it out if nothing has moved by then"
        )
    run_change(cli, change, summary=saved)


def _planned(
    cli: "Cli",
    broker: "EmbeddedBroker",
    selection: GroupSelection,
    name: str,
    value: str,
    boundary: "Boundary",
    guards: ResetGuards,
    java_check: Callable[[], None],
) -> "OffsetMove":
    from rmqctl.admin.offsets.reset_change import import_offsets, reset

    groups, topics, queues = selection
    among = None
    if name == "--from-file":
        tell_if_typed(cli, value)
        wishes = read_wishes(Path(value), groups, topics)
        return import_offsets(
            broker.view,
            broker,
            wishes.offsets,
            groups=groups,
            queues=queues,
            clamp=guards.clamp,
            no_forward=guards.no_forward,
            no_backward=guards.no_backward,
            no_live=guards.no_live,
            new_groups=guards.new_groups or wishes.groups.issuperset(groups or ()),
            full=guards.full,
            now_ms=cli.now_ms,
            warn=cli.warn,
            java_check=java_check,
        )
    if name == "--to-message":
        messages = _messages(cli, broker, value, topics)
        to = reset_targets.to_messages(messages, boundary)
        among = [message.topic for message in messages]
    else:
        to = _DESTINATIONS[name](cli, name, value, boundary)
    return reset(
        broker.view,
        broker,
        to,
        groups=groups,
        topics=topics,
        among=among,
        queues=queues,
        clamp=guards.clamp,
        no_forward=guards.no_forward,
        no_backward=guards.no_backward,
        no_live=guards.no_live,
        new_groups=guards.new_groups,
        full=guards.full,
        now_ms=cli.now_ms,
        warn=cli.warn,
        java_check=java_check,
    )


def _to_datetime(cli: "Cli", name: str, value: str, boundary: "Boundary") -> "Destination":
    moment = cli.time(name, value, changes=True)
    warn_of_future(cli, name, moment, boundary)
    return reset_targets.to_time(moment, boundary)


def _by_duration(cli: "Cli", name: str, value: str, boundary: "Boundary") -> "Destination":
    from storage.parse.times import Instant

    moment = Instant(cli.now_ms - cli.parsed(name, parse_duration, value), cli.zone)
    cli.say(f"{name} {value!r} is {moment.understood()}")
    return reset_targets.to_time(moment.timestamp, boundary)


def _to_group(_cli: "Cli", _name: str, value: str, _boundary: "Boundary") -> "Destination":
    check_group(value)
    return reset_targets.to_group(value)


_DESTINATIONS: "Mapping[str, Callable[[Cli, str, str, Boundary], Destination]]" = {
    "--to-datetime": _to_datetime,
    "--by-duration": _by_duration,
    "--to-earliest": lambda *_: reset_targets.to_earliest,
    "--to-latest": lambda *_: reset_targets.to_latest,
    "--to-current": lambda *_: reset_targets.to_current,
    "--to-offset": lambda cli, name, value, _: reset_targets.to_offset(
        cli.parsed(name, parse_offset, value)
    ),
    "--shift-by": lambda cli, name, value, _: reset_targets.shift_by(
        cli.parsed(name, parse_shift, value)
    ),
    "--to-group": _to_group,
}


def _messages(
    cli: "Cli", broker: "EmbeddedBroker", message_id: str, topics: "list[TopicChoice] | None"
) -> "list[MessageExt]":
    """The first message with an id in each topic that is meant. NotFound if a topic has none."""
    from rmqctl.admin import messages
    from rmqctl.cli.scan_display import ScanDisplay

    first: dict[str, MessageExt] = {}
    with ScanDisplay(cli) as shown:
        found = messages.with_id(broker.view, message_id, left_out=cli.left_out, on_progress=shown)
    for message in found:
        first.setdefault(message.topic, message)
    if topics is None:
        return list(first.values())
    for choice in topics:
        if choice.topic not in first:
            raise NotFound(f"topic {choice.topic} has no message with the id {message_id}")
    return [first[choice.topic] for choice in topics]
