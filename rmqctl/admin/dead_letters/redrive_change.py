"""Sending dead letters again: from a selection to a plan, and from the plan to receipts."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.admin.changes import Change, JavaCheck, Outcome, Warn, no_warning
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.left_out import tell_unreadable
from rmqctl.admin.message_filter import MessageSelection
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.admin.writing import OpenWriter, StoreWriter, time_of, writer_of
from rmqctl.errors import CliError, NotFound, PartlyDone, Refused
from rmqctl.exit_codes import CHANGED
from rmqctl.output.values import escape_controls
from storage.clock import now_ms as clock_ms
from storage.configs.journal import REDRIVE, Journal
from storage.configs.redrive_runs import RedriveRuns
from storage.counted import counted
from storage.errors import StoreBrokenError, StoreContradictionError, StoreNotWritableError
from storage.files.bounded import read_last
from storage.format.message import dlq_topic

from .dead_letters import DeadLetters, Place, refuse_others
from .redrive_plan import TO_ORIGIN, Planned, Planner, other_readers
from .redrive_run import (
    ALREADY,
    Progress,
    RedriveRun,
    Sent,
    Task,
    new_run_id,
    progress_of,
    sent_before,
    sent_since,
    task_from,
    was_deleted_since,
)
from .rewrite import Rewrite
from .rows import RedriveReceipt, RedriveRow
from .unsettled import settle, unsettled

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.retry.redrive import Content
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    Edit = Callable[[Sequence[MessageExt]], Content | None]

LAST: Final = "last"
"""In place of a run's name: the newest run of the group."""


class Limits(NamedTuple):
    """How much a run sends, and what it skips."""

    most: int | None = None
    """Most messages that are sent."""
    stop_after_errors: int = 1
    """It stops after so many messages that could not be sent."""
    max_redrives: int = 3
    """A dead letter that was redriven so often is skipped."""
    allow_empty: bool = False
    """Empty bodies are sent, too. They block groups of Java consumers."""


class Writing(NamedTuple):
    """How a redrive is carried out, as far as a caller has a say."""

    java_check: JavaCheck | None = None
    open_writer: OpenWriter | None = None
    pace: Callable[[], object] = lambda: None
    """Called before each message; waits as long as the rate demands."""
    started: Callable[[], object] = lambda: None
    """Called once the run is in the journal, before the first message."""
    on_receipt: Callable[[RedriveReceipt], object] = lambda _: None
    """Called with each receipt."""
    receipts_file: Path | None = None
    """The receipts are appended to it as JSON lines."""


class Redrive(Change):
    """One attempt of a run.

    Attributes:
        task: the whole run.
        other_readers: other groups that read the targets, and get the messages, too.
        sent_before, handled_since: of a run that goes on: how many dead letters it sent before,
            and how many were handled by another command since; those are skipped.
        left: after ``apply``, how many were not tried, after too many errors.
    """

    def __init__(
        self,
        view: "StoreView",
        broker: "Broker",
        dead_letters: DeadLetters,
        task: Task,
        planned: Sequence[Planned],
        limits: Limits,
        writing: Writing,
        *,
        progress: Progress | None = None,
        handled_since: int = 0,
    ) -> None:
        """``progress`` is that of the run so far; None for a new run."""
        self.task = task
        self._planned = planned
        self._progress = progress
        self._limits = limits
        self._writing = writing
        self._root = view.root
        self._handled = set(_handled(dead_letters, task.places))
        self.sent_before = len(progress.sent) if progress else 0
        self.handled_since = handled_since
        self._run: RedriveRun | None = None
        targets = sorted({one.target for one in self._planned if one.target is not None})
        self.other_readers = other_readers(broker, task.group, targets)
        super().__init__(
            RedriveRow,
            [one.row for one in self._planned],
            result_type=RedriveReceipt,
            summary=self._sentences(),
            question=self._question(targets),
            entry={
                "group": task.group,
                "topic": dlq_topic(task.group),
                "what": REDRIVE,
                "old": None,
                "new": {
                    "run": task.run,
                    "target": task.target,
                    "messages": len(self._planned),
                },
            },
        )

    def _question(self, targets: Sequence[str]) -> str:
        count = sum(one.target is not None for one in self._planned)
        what = f"{counted(count, 'dead letter')} of {self.task.group}"
        if targets:
            return f"Send {what} to {escape_controls(', '.join(targets))}?"
        return f"Send {what}, and write the receipts of {len(self._planned)}?"

    def _sentences(self) -> Iterator[str]:
        if self.other_readers:
            names = escape_controls(", ".join(self.other_readers))
            yield f"these groups read the target, too, and get the messages as well: {names}"
        if self._progress is not None:
            many = len(self.task.places)
            yield f"run {self.task.run}: {self.sent_before} of {many} were sent before"
        elif again := sum(
            one.target is not None and one.place in self._handled for one in self._planned
        ):
            verbs = ("was", "is") if again == 1 else ("were", "are")
            yield f"{again} of them {verbs[0]} handled before, and {verbs[1]} sent all the same"
        if self.handled_since:
            yield f"{self.handled_since} were handled by another command since, and are skipped"

    @property
    def left(self) -> int:
        """See the class."""
        return 0 if self._run is None else self._run.left

    def check(self) -> None:
        """StoreInUseError beside a Java broker."""
        (self._writing.java_check or refuse_beside_java(self._root))()

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Send them as the rows are read. Each dead letter is sent at most once, also after a kill.

        Raises StoreInUseError, Refused beside another redrive and for too many dead letters,
        CliError (6) if one was handled by another command meanwhile or the store was replaced,
        StoreNotWritableError, and OSError for the file of receipts; nothing was sent then.
        PartlyDone if a file cannot be written any more, or takes no more receipts, or the store
        broke, and some were sent.
        """
        return Outcome(self._receipts(note))

    def _receipts(self, note: Mapping[str, Any]) -> Iterator[RedriveReceipt]:
        self.check()
        runs = RedriveRuns(self._root)
        open_writer = self._writing.open_writer or writer_of(self._root)
        with (
            _appended(self._writing.receipts_file) as append,
            open_writer() as writer,
            runs.alone() as alone,
        ):
            if not alone:
                raise Refused("another redrive is running on this store; wait until it has ended")
            stored = self._begin(writer, runs, note)
            self._writing.started()

            def on_receipt(receipt: RedriveReceipt) -> None:
                append(receipt)
                self._writing.on_receipt(receipt)

            try:
                with runs.receipts(self.task.run) as written:
                    self._run = RedriveRun(
                        writer,
                        self.task,
                        self._planned,
                        stored,
                        handled=self._handled,
                        pace=self._writing.pace,
                        stop_after_errors=self._limits.stop_after_errors,
                        written=written,
                        on_receipt=on_receipt,
                    )
                    yield from self._run.receipts()
                    if self._run.is_full:
                        raise self._full(self._run.sent)
            except StoreContradictionError:
                raise  # damage has an exit code of its own
            except (OSError, StoreNotWritableError, StoreBrokenError) as error:
                if self._run is None or not self._run.sent:
                    raise
                raise self._broken_off(error, self._run.sent) from error

    def _broken_off(self, error: Exception, sent: int) -> PartlyDone:
        resume = f"continue with --resume {self.task.run}"
        if isinstance(error, OSError) and error.filename == str(self._writing.receipts_file):
            reason = f"{error.filename}: {error.strerror}"
            resume += " and a file of --receipts that can be written"
        else:
            reason, resume = str(error), f"remove the cause, then {resume}"
        many = len(self._planned)
        return PartlyDone(f"{reason}; {sent} of {many} were sent before that; {resume}")

    def _full(self, sent: int) -> CliError:
        sentence = (
            f"the file of receipts of run {self.task.run} takes no more; {sent} of "
            f"{len(self._planned)} were sent before that; redrive the others in a new run"
        )
        return PartlyDone(sentence) if sent else CliError(sentence)

    def _begin(
        self, writer: StoreWriter, runs: RedriveRuns, note: Mapping[str, Any]
    ) -> dict[Place, Sent]:
        """Settle older runs, check, note; gives what this run stored without a receipt."""
        task, view = self.task, writer.view
        stored: dict[Place, Sent] = {}
        if self._progress is None and not runs.has_room(task.entry()):
            raise Refused(
                f"{len(task.places)} dead letters are too many for one run; nothing was sent; "
                "choose fewer, as with --max, in several runs"
            )
        if self._progress is not None:
            stored = read_run(view, task.group, task.run)[1].late
        # A kill may leave a message that only this writer's recovery has found: it is skipped.
        known = self._handled | set(stored) | settle(view, task.group, note)
        dead_letters = DeadLetters(view, writer, task.group)
        places = {planned.place for planned in self._planned} - known
        news = {place for place in places if dead_letters.is_handled(place)}
        if news:
            raise CliError(
                f"{len(news)} of these dead letters were handled by another command in the "
                "meantime; nothing was sent",
                CHANGED,
            )
        sent = ((one.place, one.row.msg_id) for one in self._planned if one.target is not None)
        refuse_others(view, dead_letters.topic, sent, "nothing was sent")
        Journal(self._root).append({**note, **self.entry}, time_of(writer))
        if self._progress is None:
            runs.begin(task.run, task.entry())
        return stored


def redrive(
    view: "StoreView",
    broker: "Broker",
    group: str,
    chosen: MessageSelection,
    *,
    target: str = TO_ORIGIN,
    rewrite: Rewrite = Rewrite(),  # noqa: B008 - a value
    edit: "Edit | None" = None,
    limits: Limits = Limits(),  # noqa: B008 - a value
    writing: Writing = Writing(),  # noqa: B008 - a value
    now_ms: int | None = None,
    warn: Warn = no_warning,
    left_out: Warn = no_warning,
    on_progress: OnProgress = no_progress,
) -> Redrive:
    """Send dead letters again, each with a receipt; those that were sent are marked as handled.

    ``target`` is ``origin``, ``retry`` (this group only, as a retry) or a topic. ``edit`` makes the
    message to send from the chosen ones, instead of ``rewrite``; None: it will be edited later, so
    this is for the plan only. NotFound for an unknown group, id or target; UsageProblem for a
    target that is reserved for the broker. Rows are RedriveRow, then RedriveReceipt.
    """
    log_end = view.log_max_offset()
    dead_letters = DeadLetters(view, broker, group)
    killed = list(unsettled(view, group))
    for one in killed:
        dead_letters.take_for_handled(one.sent)
    messages = list(dead_letters.chosen(chosen, on_progress=on_progress))
    edited = None
    if edit is not None:
        messages = messages[: limits.most]
        edited = edit(messages)
        rewrite = Rewrite(edited=edited) if edited is not None else rewrite
    planner = Planner(
        broker,
        dead_letters,
        target,
        rewrite,
        limits.max_redrives,
        sent_before=sent_before(view.root, group),
        to_be_edited=edit is not None and edited is None,
        allow_empty=limits.allow_empty,
    )
    planned = planner.plan(messages, on_progress, most=limits.most)
    places = [one.place for one in planned]
    task = Task(
        new_run_id(clock_ms() if now_ms is None else now_ms),
        group,
        target,
        limits.max_redrives,
        log_end,
        places,
        rewrite,
        _handled(dead_letters, places),
    )
    tell_unreadable(left_out, dead_letters.unreadable, dead_letters.bodies)
    runs = RedriveRuns(view.root)
    if killed and runs.is_any_running():
        warn("another redrive is running on this store; this one can begin when it has ended")
    else:
        for one in killed:
            # One that is settled has ended meanwhile.
            if not one.is_void and not runs.is_settled(one.run):
                warn(f"run {one.run} was interrupted; continue it with --resume {one.run}")
    return Redrive(view, broker, dead_letters, task, planned, limits, writing)


def resume(
    view: "StoreView",
    broker: "Broker",
    group: str,
    run: str = LAST,
    *,
    limits: Limits = Limits(),  # noqa: B008 - a value
    writing: Writing = Writing(),  # noqa: B008 - a value
) -> Redrive:
    """Continue a run with what is left. NotFound for an unknown run, and for one whose dead letter
    topic was deleted since.

    Target, rewrite and most redrives are those of the run. Empty bodies are sent, too, if the run
    or ``limits`` allow it.
    """
    dead_letters = DeadLetters(view, broker, group)
    task, progress = read_run(view, group, run)
    if was_deleted_since(view, task):
        raise NotFound(
            f"the dead letters of run {task.run} are gone: topic {dead_letters.topic} was deleted "
            "since; 'dlq redrive' without --resume begins a new run"
        )
    allow_empty = limits.allow_empty or task.rewriting.allow_empty
    task = task._replace(rewriting=task.rewriting._replace(allow_empty=allow_empty))
    for one in unsettled(view, group, but=task.run):
        dead_letters.take_for_handled(one.sent)
    planner = Planner(
        broker,
        dead_letters,
        task.target,
        task.rewriting,
        task.max_redrives,
        sent_before=sent_before(view.root, group, but=task.run),
        allow_empty=allow_empty,
    )
    sent = progress.sent
    since = _handled_since(view, dead_letters, task) - sent
    gone = since | sent
    left = [place for place in task.places if place not in gone]
    planned = [
        *(_late(dead_letters, place) for place in progress.late),
        *planner.plan(_readable(map(dead_letters.at, left)), most=limits.most),
    ]
    return Redrive(
        view,
        broker,
        dead_letters,
        task,
        planned,
        limits,
        writing,
        progress=progress,
        handled_since=len(since),
    )


def settle_interrupted(
    view: "StoreView", group: str, note: Mapping[str, Any] | None = None
) -> None:
    """Mark what killed runs sent, unless a redrive is running: for a run with nothing left.

    ``note`` is the head of the journal entry.
    """
    with RedriveRuns(view.root).alone() as alone:
        if alone:
            settle(view, group, note or {})


def read_run(view: "StoreView", group: str, run: str) -> tuple[Task, Progress]:
    """A run of a group, and its progress. NotFound if there is none of that name."""
    runs = RedriveRuns(view.root)
    names = runs.names()
    for name in reversed(names) if run == LAST else [run]:
        read = runs.read(name)
        if read is not None and read[0]["group"] == group:
            task = task_from(read[0])
            return task, progress_of(view, task, read[1])
    raise NotFound(f"group {group} has no redrive run {run!r} in {view.root}")


def _handled(dead_letters: DeadLetters, places: Iterable[Place]) -> list[Place]:
    return [place for place in places if dead_letters.is_handled(place)]


def _handled_since(view: "StoreView", dead_letters: DeadLetters, task: Task) -> set[Place]:
    """The dead letters of a run that were marked, or sent, since it began."""
    before = set(task.handled)
    marked = set(_handled(dead_letters, task.places)) - before
    # Of what was marked already, no mark tells whether another run has sent it since.
    return marked | (before & sent_since(view, task)) if before else marked


def _readable(messages: "Iterable[MessageExt | None]") -> "list[MessageExt]":
    return [message for message in messages if message is not None]


def _late(dead_letters: DeadLetters, place: Place) -> Planned:
    """A dead letter that was sent, but whose receipt a kill prevented."""
    dead = dead_letters.at(place)
    msg_id = "" if dead is None else dead.msg_id
    return Planned(place, None, RedriveRow(place[1], msg_id, None, None, 0, None, ALREADY))


@contextmanager
def _appended(path: Path | None) -> Iterator[Callable[[RedriveReceipt], None]]:
    """Write each receipt to the user's file, one JSON object per line; None: no file.

    OSErrors name the file.
    """
    if path is None:
        yield lambda _: None
        return
    with path.open("ab", buffering=0) as file:

        def write(data: bytes) -> None:
            left = memoryview(data)
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from error

        try:
            last = read_last(path, 1)
        except OSError:  # a pipe, or a file that this user may only write
            last = b""
        if last not in (b"", b"\n"):  # a full disk, or a power loss, cut the last line
            write(b"\n")

        def append(receipt: RedriveReceipt) -> None:
            line = json.dumps(receipt._asdict(), ensure_ascii=False, separators=(",", ":"))
            write(line.encode("utf-8", "replace") + b"\n")

        yield append
