"""``dlq redrive``: from the options to a plan, and from the plan to receipts."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.change_steps import carry_out, will_execute
from rmqctl.cli.left_out import tell_unreadable
from rmqctl.cli.opening import open_for_reading, open_for_writing
from rmqctl.dlq.dead_letters import DeadLetters
from rmqctl.dlq.rows import RedriveReceipt, RedriveRow
from rmqctl.errors import CliError, NotFound, Refused, UsageProblem
from rmqctl.exit_codes import CHANGED
from rmqctl.output.values import escape_controls
from storage.clock import now_ms
from storage.configs.journal import Journal
from storage.configs.redrive_runs import RedriveRuns
from storage.format.message import dlq_topic

from .edit import edited
from .plan import Choice, Place, Planned, Planner, other_readers
from .rewrite import Rewrite
from .run import (
    ALREADY,
    Progress,
    RedriveRun,
    Sent,
    Task,
    dead_letter_at,
    new_run_id,
    progress_of,
    sent_before,
    settle,
    task_from,
    unsettled,
)

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli
    from storage.readonly import StoreView

LAST: Final = "last"
"""``--resume last``: the newest run of the group."""


class Limits(NamedTuple):
    """Limits and rate of a run."""

    rate: float | None
    most: int | None
    stop_after_errors: int
    max_redrives: int
    allow_empty: bool


class _Attempt(NamedTuple):
    """The work of this call."""

    task: Task
    planned: Sequence[Planned]
    resumes: bool


def redrive(
    cli: "Cli",
    group: str,
    choice: Choice,
    target: str,
    rewriting: Rewrite,
    limits: Limits,
    receipts_file: Path | None,
    *,
    edit: bool = False,
) -> None:
    """Start a run: show its plan, and carry it out with ``--execute``.

    With ``edit`` the one selected dead letter is edited before the plan is shown; a dry run opens
    no editor.
    """
    with open_for_reading(cli) as broker:
        dead_letters = DeadLetters(broker, group)
        messages = list(choice.take(dead_letters))
        if limits.most is not None:
            messages = messages[: limits.most]
        task = Task(
            new_run_id(cli.now_ms),
            group,
            target,
            limits.max_redrives,
            broker.view.log_max_offset(),
            [(message.queue_id, message.queue_offset) for message in messages],
            rewriting,
        )
        if edit and len(messages) != 1:
            raise UsageProblem(f"--edit takes one dead letter, but {len(messages)} are selected")
        if edit and will_execute(cli):
            task = task._replace(rewriting=Rewrite(edited=edited(messages[0], cli.environ)))
        planner = Planner(
            broker,
            dead_letters,
            target,
            task.rewriting,
            limits.max_redrives,
            sent_before=sent_before(broker.view.root, group),
            to_be_edited=edit and not will_execute(cli),
            allow_empty=limits.allow_empty,
        )
        planned = planner.plan(messages)
        tell_unreadable(cli.left_out, dead_letters.unreadable, dead_letters.bodies)
        for killed, _ in unsettled(broker.view.root, group):
            cli.warn(f"run {killed.run} was interrupted; continue it with --resume {killed.run}")
        question = _question(cli, broker, group, planned)
    handled = {place for place in task.places if _is_handled(dead_letters, place)}
    attempt = _Attempt(task, planned, resumes=False)
    _carry_out(cli, attempt, limits, receipts_file, question, handled)


def resume(cli: "Cli", group: str, run: str, limits: Limits, receipts_file: Path | None) -> None:
    """Continue a run with the work that is left. NotFound for an unknown run."""
    with open_for_reading(cli) as broker:
        dead_letters = DeadLetters(broker, group)
        task, progress = _read_run(broker.view, group, run)
        planner = Planner(
            broker,
            dead_letters,
            task.target,
            task.rewriting,
            task.max_redrives,
            sent_before=sent_before(broker.view.root, group, but=task.run),
            allow_empty=limits.allow_empty,
        )
        sent = progress.sent
        left = [place for place in task.places if place not in sent]
        if limits.most is not None:
            left = left[: limits.most]
        dead = [dead_letter_at(broker.view, dead_letters.topic, place) for place in left]
        planned = [
            *(_late(broker, dead_letters, place) for place in progress.late),
            *planner.plan(message for message in dead if message is not None),
        ]
        question = _question(cli, broker, group, planned)
    cli.say(f"run {task.run}: {len(sent)} of {len(task.places)} were sent before")
    # A mark that was set since the run began was set by another command: skip the message.
    handled = {place for place in task.places if _is_handled(dead_letters, place)}
    theirs = handled - sent
    if theirs:
        cli.say(f"{len(theirs)} were handled by another command since, and are skipped")
        planned = [one for one in planned if one.place not in theirs]
    _carry_out(cli, _Attempt(task, planned, resumes=True), limits, receipts_file, question, handled)


def _carry_out(
    cli: "Cli",
    attempt: _Attempt,
    limits: Limits,
    receipts_file: Path | None,
    question: str,
    handled: set[Place],
) -> None:
    executes = will_execute(cli)
    check = refuse_beside_java(cli.store.path) if executes else None
    if executes and not attempt.planned:
        _settle(cli, attempt.task.group)
    outcome: list[RedriveRun] = []

    def apply() -> Iterator[RedriveReceipt]:
        with ExitStack() as stack:
            if check is not None:
                check()
            told = stack.enter_context(_receipts_to(receipts_file))
            yield from _attempt(cli, attempt, limits, handled, told, outcome, stack)

    try:
        carry_out(
            cli,
            RedriveRow,
            [planned.row for planned in attempt.planned],
            apply,
            question=question,
            result_type=RedriveReceipt,
        )
    finally:
        if outcome and outcome[0].left:
            run = attempt.task.run
            cli.say(f"{outcome[0].left} were not tried; continue with --resume {run} --execute")
    if not executes and attempt.resumes:
        cli.say(f"this was run {attempt.task.run}")


def _attempt(
    cli: "Cli",
    attempt: _Attempt,
    limits: Limits,
    handled: set[Place],
    told: "Callable[[RedriveReceipt], None]",
    outcome: list[RedriveRun],
    stack: ExitStack,
) -> Iterator[RedriveReceipt]:
    from rmqctl.cli.services import services_by_the_way
    from rmqctl.produce.rate_limit import Pace

    task = attempt.task
    broker = stack.enter_context(open_for_writing(cli))
    runs = RedriveRuns(broker.view.root)
    if not stack.enter_context(runs.alone()):
        raise Refused("another redrive is running on this store; wait until it has ended")
    stored: dict[Place, Sent] = {}
    if attempt.resumes:
        stored = _read_run(broker.view, task.group, task.run)[1].late
    settle(broker.view, task.group)
    dead_letters = DeadLetters(broker, task.group)
    places = {planned.place for planned in attempt.planned}
    news = {place for place in places - handled - set(stored) if _is_handled(dead_letters, place)}
    if news:
        raise CliError(
            f"{len(news)} of these dead letters were handled by another command in the meantime; "
            "nothing was sent",
            CHANGED,
        )
    note = change_note(cli, group=task.group, topic=dlq_topic(task.group), what="redrive")
    change = {"run": task.run, "target": task.target, "messages": len(attempt.planned)}
    Journal(broker.view.root).append({**note, "old": None, "new": change}, _now(broker))
    if not attempt.resumes:
        runs.begin(task.run, task.entry())
    cli.say(f"run {task.run}; to continue it after an interruption: --resume {task.run} --execute")
    written = stack.enter_context(runs.receipts(task.run))
    stack.enter_context(services_by_the_way(cli, broker))
    redriving = RedriveRun(
        broker,
        task,
        attempt.planned,
        stored,
        pace=Pace(limits.rate),
        stop_after_errors=limits.stop_after_errors,
        written=written,
        told=told,
    )
    outcome.append(redriving)
    total = len(attempt.planned)
    progress = stack.enter_context(cli.progress("redrive", "messages", total))
    for receipt in redriving.receipts():
        progress.advance(1, 1)
        yield receipt


def _settle(cli: "Cli", group: str) -> None:
    """Mark what a killed run sent, if nothing is left to send."""
    with open_for_reading(cli) as broker, RedriveRuns(broker.view.root).alone() as alone:
        if alone:
            settle(broker.view, group)


def _read_run(view: "StoreView", group: str, run: str) -> tuple[Task, Progress]:
    """A run of a group, and its progress."""
    runs = RedriveRuns(view.root)
    names = runs.names()
    for name in reversed(names) if run == LAST else [run]:
        read = runs.read(name)
        if read is not None and read[0]["group"] == group:
            task = task_from(read[0])
            return task, progress_of(view, task, read[1])
    raise NotFound(f"group {group} has no redrive run {run!r} in {view.root}")


def _late(broker: "EmbeddedBroker", dead_letters: DeadLetters, place: Place) -> Planned:
    """A dead letter that was sent, but whose receipt a kill prevented."""
    dead = dead_letter_at(broker.view, dead_letters.topic, place)
    msg_id = "" if dead is None else dead.msg_id
    return Planned(place, None, RedriveRow(place[1], msg_id, None, None, 0, None, ALREADY))


def _is_handled(dead_letters: DeadLetters, place: Place) -> bool:
    queue_id, offset = place
    return offset in dead_letters.handled_in(queue_id)


def _now(broker: "EmbeddedBroker") -> int:
    return now_ms() if broker.store is None else broker.store.now()


def _question(cli: "Cli", broker: "EmbeddedBroker", group: str, planned: Sequence[Planned]) -> str:
    """Confirm the plan; names on stderr the other groups that read the targets."""
    targets = sorted({one.target for one in planned if one.target is not None})
    readers = other_readers(broker, group, targets)
    if readers:
        names = escape_controls(", ".join(readers))
        cli.say(f"these groups read the target, too, and get the messages as well: {names}")
    count = sum(one.target is not None for one in planned)
    where = escape_controls(", ".join(targets)) or "nowhere"
    dead_letters = "dead letter" if count == 1 else "dead letters"
    return f"Send {count} {dead_letters} of {group} to {where}?"


@contextmanager
def _receipts_to(path: Path | None) -> Iterator[Callable[[RedriveReceipt], None]]:
    """Write each receipt to the user's file, one JSON object per line; None: no file."""
    if path is None:
        yield lambda _: None
        return
    with path.open("a", encoding="utf-8", buffering=1) as file:
        yield lambda receipt: print(
            json.dumps(receipt._asdict(), ensure_ascii=False, separators=(",", ":")), file=file
        )
