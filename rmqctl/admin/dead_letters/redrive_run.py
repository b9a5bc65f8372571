"""Carrying out a redrive: send, write the receipt, mark as handled; continue after a kill.

A run sends each dead letter at most once, however often it is interrupted and resumed. Each message
that it stores names the run and the dead letter. A resumed run searches for them in the log, from
its end at the start of the run: a message that was stored and whose receipt was lost is found and
gets its receipt; one that a power loss removed is sent again. (If the log files of that time were
deleted, only the receipts count.) A message that was not acknowledged is either whole in the log or
not in it at all.
"""

import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.errors import BrokerError
from broker.retry.redrive_properties import REDRIVE_DEAD, REDRIVE_RUN
from storage.configs.deleted_topics import deleted_topics_for_reading
from storage.configs.dlq_acks import DlqAcksFile, Range
from storage.configs.redrive_runs import SETTLED, RedriveRuns
from storage.errors import InvalidMessageError, StoreBrokenError
from storage.format.errors import BodyError
from storage.format.message import dlq_topic

from .dead_letters import Place, dead_letter_at
from .marks_meanwhile import MarksMeanwhile
from .redrive_plan import Planned, SentBefore
from .rewrite import PipeFailedError, Rewrite, rewriting_from
from .rows import RedriveReceipt

if TYPE_CHECKING:
    from rmqctl.admin.writing import StoreWriter
    from storage.configs.redrive_runs import Receipts
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_MARK_EVERY: Final = 500
_MARK_EVERY_S: Final = 1.0
"""Number of receipts, or time, after which dead letters are marked: a mark takes a sync."""
_REFUSALS: Final = (BrokerError, InvalidMessageError, PipeFailedError, BodyError)
"""Errors that refuse one message, while others can be sent."""

ALREADY: Final = "stored by an earlier, interrupted attempt"


class Task(NamedTuple):
    """The task of a run: the first line of its file."""

    run: str
    group: str
    target: str
    max_redrives: int
    log_offset: int
    """End of the log when the run began."""
    places: Sequence[Place]
    rewriting: Rewrite
    handled: Sequence[Place] = ()
    """Those of ``places`` that were marked as handled when the run began."""

    def entry(self) -> dict[str, Any]:
        """As JSON."""
        return {**self._asdict(), "rewriting": self.rewriting.entry()}


def task_from(entry: dict[str, Any]) -> Task:
    """What ``Task.entry`` wrote."""
    return Task(
        entry["run"],
        entry["group"],
        entry["target"],
        entry["max_redrives"],
        entry["log_offset"],
        _places(entry["places"]),
        rewriting_from(entry["rewriting"]),
        _places(entry.get("handled", ())),
    )


def _places(pairs: Iterable[Sequence[int]]) -> list[Place]:
    return [(queue_id, offset) for queue_id, offset in pairs]


def new_run_id(now_ms: int) -> str:
    """A name for a run: its time in UTC, and a random number."""
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    return f"R{moment:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


class Sent(NamedTuple):
    """A message that a run stored: its position and time."""

    topic: str
    msg_id: str
    queue_id: int
    queue_offset: int
    timestamp: int


def stored_by(view: "StoreView", task: Task) -> dict[Place, Sent]:
    """The messages that a run stored, by dead letter, according to the log."""
    from storage.log.byte_search import find_in_log

    topic = dlq_topic(task.group)
    by_id: dict[str, Place] = {}
    for known in task.places:
        dead = dead_letter_at(view, topic, known)
        if dead is not None:
            by_id[dead.offset_msg_id] = known
    found: dict[Place, Sent] = {}
    start = max(task.log_offset, view.log_min_offset())
    log = view.files.apart().log
    for at in find_in_log(log, start, view.log_max_offset(), task.run.encode()):
        message = view.look_message_by_offset(at)
        if message is None or message.get_property(REDRIVE_RUN) != task.run:
            continue
        place = by_id.get(message.get_property(REDRIVE_DEAD) or "")
        # Retries of the redriven message have the same properties, but come later in the log.
        if place is not None:
            found.setdefault(place, _sent(message))
    return found


def _sent(message: "MessageExt") -> Sent:
    return Sent(
        message.topic,
        message.msg_id,
        message.queue_id,
        message.queue_offset,
        message.store_timestamp,
    )


def done_places(receipts: Sequence[dict[str, Any]]) -> set[Place]:
    """Dead letters that were sent, according to receipts."""
    return {place for place, _ in _applied(receipts)}


def _applied(receipts: Sequence[dict[str, Any]]) -> Iterator[tuple[Place, str]]:
    """The place and the unique id of each dead letter that was sent, according to receipts."""
    for receipt in receipts:
        if receipt.get("applied"):
            yield (receipt["queue_id"], receipt["queue_offset"]), receipt["msg_id"]


def sent_before(root: Path, group: str, but: str | None = None) -> SentBefore:
    """What the runs of a group sent, without the run ``but``."""
    found: dict[tuple[Place, str], list[str]] = defaultdict(list)
    for name, receipts in _runs_of(root, group, but):
        # Once per run: a resumed run may write a receipt twice.
        for sent in dict.fromkeys(_applied(receipts)):
            found[sent].append(name)
    return found


def sent_since(view: "StoreView", task: Task) -> set[Place]:
    """What other runs of the group sent after a run began, by their receipts and the log."""
    found: set[Place] = set()
    for _, receipts in _runs_of(view.root, task.group, task.run):
        for receipt in receipts:
            if receipt.get("applied"):
                queue = receipt["target"], receipt["new_queue_id"]
                unit = view.unit(*queue, receipt["new_queue_offset"])
                if unit is not None and unit[0] >= task.log_offset:
                    found.add((receipt["queue_id"], receipt["queue_offset"]))
    return found


def _runs_of(
    root: Path, group: str, but: str | None
) -> Iterator[tuple[str, Sequence[dict[str, Any]]]]:
    """The receipts of each run of a group, without the run ``but``."""
    runs = RedriveRuns(root)
    for name in runs.names():
        read = None if name == but else runs.read(name)
        if read is not None and read[0]["group"] == group:
            yield name, read[1]


class Progress(NamedTuple):
    """The progress of a run."""

    done: set[Place]
    """Sent, with a receipt."""
    late: dict[Place, Sent]
    """Sent, and killed before the receipt."""

    @property
    def sent(self) -> set[Place]:
        """Sent either way."""
        return self.done | set(self.late)


def progress_of(view: "StoreView", task: Task, receipts: Sequence[dict[str, Any]]) -> Progress:
    """The progress of a run, by its receipts and by the log.

    A receipt whose message a power loss removed counts only if the log of that time was deleted, so
    that the log cannot tell. One with another dead letter in its place, or with a place that the
    queue does not have, is of a queue that was deleted.
    """
    if was_deleted_since(view, task):
        return Progress(set(), {})
    stored = stored_by(view, task)
    topic = dlq_topic(task.group)
    has_log = view.log_min_offset() <= task.log_offset
    done: set[Place] = set()
    for place, msg_id in _applied(receipts):
        if place not in stored:
            dead = dead_letter_at(view, topic, place)
            if dead is None:
                queue_id, offset = place
                if offset >= view.max_offset_in_queue(topic, queue_id):
                    continue
            elif has_log or dead.msg_id != msg_id:
                continue
        done.add(place)
    return Progress(done, {p: sent for p, sent in stored.items() if p not in done})


def was_deleted_since(view: "StoreView", task: Task) -> bool:
    """Whether the dead letter topic was deleted since a run began: its places have no dead letter
    of the run any more."""
    deleted = deleted_topics_for_reading(view.root).get(dlq_topic(task.group))
    return deleted is not None and task.log_offset <= deleted


class RedriveRun:
    """One attempt of a run, over a store that is open for writing.

    ``planned`` are the dead letters that are left to send; ``stored`` are those that earlier
    attempts stored without a receipt. What others mark meanwhile is skipped; ``handled`` was marked
    before. ``pace`` is called before each send. Consume ``receipts()`` to run it.
    """

    def __init__(
        self,
        writer: "StoreWriter",
        task: Task,
        planned: Sequence[Planned],
        stored: dict[Place, Sent],
        *,
        handled: Collection[Place],
        pace: Callable[[], object],
        stop_after_errors: int,
        written: "Receipts",
        on_receipt: Callable[[RedriveReceipt], object],
    ) -> None:
        self._writer = writer
        self._task = task
        self._planned = planned
        self._stored = stored
        self._pace = pace
        self._most_errors = stop_after_errors
        self._written = written
        self._on_receipt = on_receipt
        self._topic = dlq_topic(task.group)
        self._handled = MarksMeanwhile(writer.view, self._topic, handled)
        self._to_mark: dict[int, list[Range]] = defaultdict(list)
        self._unmarked = 0
        self._marked_at = time.monotonic()
        self.sent = 0
        """Messages that were sent, also by an earlier attempt without a receipt."""
        self.errors = 0
        """Messages that could not be sent."""
        self.left = 0
        """Messages that were not tried, after too many errors."""
        self.is_full = False
        """Whether it ended early because its file takes no more receipts."""

    def receipts(self) -> Iterator[RedriveReceipt]:
        """Send the dead letters one by one; yields their receipts."""
        self._written.begin()
        can_mark = True
        try:
            for number, planned in enumerate(self._planned):
                if self._written.is_full:
                    self.is_full = True
                    break
                receipt = self._receipt(planned)
                self._note(planned, receipt)
                yield receipt
                if self.errors >= self._most_errors:
                    self.left = len(self._planned) - number - 1
                    break
        except StoreBrokenError:
            can_mark = False  # nothing can be synced; the receipts tell a resumed run what was sent
            raise
        finally:
            if can_mark:
                self._mark()
        # Not after a signal: it may come between a message and its receipt.
        self._written.write(SETTLED)

    def _receipt(self, planned: Planned) -> RedriveReceipt:
        sent = self._stored.get(planned.place)
        if sent is not None:
            return self._of(planned, sent, ALREADY)
        if planned.target is None:
            return self._of(planned, None, planned.row.note)
        self._pace()
        if planned.place in self._handled:
            return self._of(planned, None, "not sent: another command has handled it since")
        dead = dead_letter_at(self._writer.view, self._topic, planned.place)
        if dead is None:
            return self._of(planned, None, "not sent: the dead letter can no longer be read")
        try:
            content = self._task.rewriting.content(dead)
            result = self._writer.redriving.redrive(
                dead, self._task.group, planned.target, self._task.run, content
            )
        except _REFUSALS as error:
            self.errors += 1
            return self._of(planned, None, f"not sent: {error}")
        queue = result.message_queue
        sent = Sent(
            queue.topic,
            result.msg_id,
            queue.queue_id,
            result.queue_offset,
            result.store_timestamp,
        )
        return self._of(planned, sent, planned.row.note)

    def _of(self, planned: Planned, sent: Sent | None, note: str | None) -> RedriveReceipt:
        return RedriveReceipt(
            planned.row.queue_offset,
            planned.row.msg_id,
            sent.topic if sent else planned.target,
            sent.msg_id if sent else None,
            sent.queue_id if sent else None,
            sent.queue_offset if sent else None,
            sent.timestamp if sent else None,
            note,
            self._task.run,
            sent is not None,
        )

    def _note(self, planned: Planned, receipt: RedriveReceipt) -> None:
        queue_id, offset = planned.place
        self.sent += receipt.applied
        # First, as it was sent even if writing the receipt fails. What an earlier attempt stored
        # was marked when that was settled; a user may have removed the mark since.
        if receipt.applied and planned.place not in self._stored:
            self._to_mark[queue_id].append((offset, offset + 1))
            self._unmarked += 1
        # The user's file first: a resumed run writes a receipt again that the run's file lacks.
        self._on_receipt(receipt)
        self._written.write({"queue_id": queue_id, **receipt._asdict()})
        late = time.monotonic() >= self._marked_at + _MARK_EVERY_S
        if late or self._unmarked >= _MARK_EVERY:
            self._mark()

    def _mark(self) -> None:
        if self._unmarked:
            if self._writer.store is not None:
                self._writer.store.flush()  # a mark must not outlive its message
            view = self._writer.view
            DlqAcksFile(view.root, view).mark(self._topic, self._to_mark)
            self._to_mark.clear()
            self._unmarked = 0
        self._marked_at = time.monotonic()
