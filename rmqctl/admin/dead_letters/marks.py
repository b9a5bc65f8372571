"""Marking dead letters as handled, and removing marks.

A mark changes nothing in the queue: the log is append-only, and a consumer of the dead letter topic
still reads every message.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from broker.retry.failures import reason_text
from rmqctl.admin.changes import Change, JavaCheck, Outcome, Warn, no_warning
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.left_out import tell_unreadable
from rmqctl.admin.message_filter import MessageSelection
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.errors import CliError, NotFound
from rmqctl.exit_codes import CHANGED
from storage.clock import now_ms
from storage.configs.dlq_acks import DlqAcksFile, Marks
from storage.configs.journal import (
    ACK,
    CHANGE_ID,
    REDRIVE,
    SETTLE,
    UNDO_OF,
    Journal,
    is_topic_deletion,
)
from storage.configs.redrive_runs import RedriveRuns
from storage.readonly import StoreView

from .dead_letters import DeadLetters, Place, as_marks, place_of, refuse_others
from .redrive_run import done_places
from .rows import AckRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.format.message import MessageExt


class MarkChange(Change):
    """A change that marks dead letters as handled, or removes such marks."""

    undone_by_number = False

    def __init__(
        self,
        dead_letters: DeadLetters,
        plan: "Mapping[Place, MessageExt | None]",
        *,
        handled: bool,
        undo_of: int | None = None,
        java_check: JavaCheck | None = None,
    ) -> None:
        """``plan`` has the dead letters by place; None for one that cannot be read any more."""
        self._root = dead_letters.view.root
        self._topic = dead_letters.topic
        self._places = list(plan)
        self._handled = handled
        self._java_check = java_check
        group = dead_letters.group
        count = f"{len(plan)} dead letter{'' if len(plan) == 1 else 's'} of {group}"
        super().__init__(
            AckRow,
            [_row(place, message, handled=handled) for place, message in plan.items()],
            question=f"Mark {count} as handled?" if handled else f"Remove the marks of {count}?",
            entry={
                **({} if undo_of is None else {UNDO_OF: undo_of}),
                "group": group,
                "topic": self._topic,
                "what": ACK,
            },
        )

    def check(self) -> None:
        """StoreInUseError beside a Java broker."""
        (self._java_check or refuse_beside_java(self._root))()

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Write the marks, after the journal entry; on the device when this returns.

        CliError (6) if another command has marked or unmarked one meanwhile, or if the store was
        replaced; nothing was changed then.
        """
        self.check()
        change_id: int | None = None

        def journal(changed: Marks) -> None:
            nonlocal change_id
            self._refuse_other(changed)
            marks = {"handled": changed}
            old, new = (None, marks) if self._handled else (marks, None)
            entry = {**note, **self.entry, "old": old, "new": new}
            change_id = Journal(self._root).append(entry, now_ms())

        with StoreView.open(self._root) as view:
            ids = (row.msg_id for row in self.plan)
            planned = zip(self._places, ids, strict=True)
            refuse_others(view, self._topic, planned, "nothing was changed")
            file = DlqAcksFile(self._root, view)
            change = file.mark if self._handled else file.unmark
            self._refuse_other(change(self._topic, as_marks(self._places), journal))
        return Outcome([row._replace(applied=True) for row in self.plan], change_id)

    def _refuse_other(self, changed: Marks) -> None:
        """Raise if marks of the plan would not change, as another command was first."""
        count = sum(high - low for ranges in changed.values() for low, high in ranges)
        gone = len(self._places) - count
        if gone:
            what = "handled" if self._handled else "unmarked"
            raise CliError(
                f"{gone} of these dead letters were {what} by another command in the meantime; "
                "nothing was changed",
                CHANGED,
            )


def acknowledge(
    view: StoreView,
    broker: "Broker",
    group: str,
    chosen: MessageSelection,
    *,
    left_out: Warn = no_warning,
    java_check: JavaCheck | None = None,
    on_progress: OnProgress = no_progress,
) -> MarkChange:
    """Mark dead letters as handled that are not marked yet.

    Marks belong to rmqctl; other programs ignore them. NotFound for an unknown group or id.
    """
    dead_letters = DeadLetters(view, broker, group)
    return _change(dead_letters, chosen, left_out, java_check, on_progress, handled=True)


def remove_marks(
    view: StoreView,
    broker: "Broker",
    group: str,
    chosen: MessageSelection,
    *,
    left_out: Warn = no_warning,
    java_check: JavaCheck | None = None,
    on_progress: OnProgress = no_progress,
) -> MarkChange:
    """Remove the marks of dead letters. NotFound for an unknown group or id."""
    dead_letters = DeadLetters(view, broker, group)
    return _change(dead_letters, chosen, left_out, java_check, on_progress, handled=False)


def _change(
    dead_letters: DeadLetters,
    chosen: MessageSelection,
    left_out: Warn,
    java_check: JavaCheck | None,
    on_progress: OnProgress,
    *,
    handled: bool,
) -> MarkChange:
    plan = {
        place: message
        for message in dead_letters.chosen(chosen, handled=not handled, on_progress=on_progress)
        if dead_letters.is_handled(place := place_of(message)) is not handled
    }
    tell_unreadable(left_out, dead_letters.unreadable, dead_letters.bodies)
    return MarkChange(dead_letters, plan, handled=handled, java_check=java_check)


def undo_acknowledge(
    view: StoreView,
    broker: "Broker",
    group: str,
    change_id: int | None = None,
    *,
    java_check: JavaCheck | None = None,
) -> MarkChange:
    """Undo the marking of a group that has a number in the journal, None: the last one.

    NotFound without one that was not undone yet, and has marks left. A mark that was removed
    since, or whose dead letter was redriven since, counts as undone.
    """
    dead_letters = DeadLetters(view, broker, group)
    later: set[Place] = set()
    for entry in reversed(_about(Journal(view.root).entries(), dead_letters)):
        if entry["what"] == ACK:
            later |= set(_places(entry["old"], dead_letters))
            places = [
                place
                for place in _places(entry["new"], dead_letters)
                if place not in later and dead_letters.is_handled(place)
            ]
            if places and change_id in (None, entry[CHANGE_ID]):
                return MarkChange(
                    dead_letters,
                    {place: dead_letters.at(place) for place in places},
                    handled=False,
                    undo_of=entry[CHANGE_ID],
                    java_check=java_check,
                )
        else:
            later |= _redriven(entry, dead_letters)
    if change_id is not None:
        raise NotFound(f"no mark of change {change_id} of group {group} is left to undo")
    raise NotFound(f"no 'dlq ack' of group {group} is left to undo")


def _about(
    entries: Iterable[Mapping[str, Any]], dead_letters: DeadLetters
) -> list[Mapping[str, Any]]:
    """The entries of a group's marks and redrives, oldest first, without those of a topic that was
    deleted since: the offsets of its dead letters came again."""
    found: list[Mapping[str, Any]] = []
    for entry in entries:
        if entry.get("what") in (ACK, REDRIVE, SETTLE):
            if entry.get("group") == dead_letters.group:
                found.append(entry)
        elif entry.get("topic") == dead_letters.topic and is_topic_deletion(entry):
            found.clear()
    return found


def _redriven(entry: Mapping[str, Any], dead_letters: DeadLetters) -> set[Place]:
    """What the run of an entry sent, as far as the entry or the run's receipts say."""
    if entry["what"] == SETTLE:
        return set(_places(entry["new"], dead_letters))
    new = entry.get("new")
    run = new.get("run") if isinstance(new, Mapping) else None
    read = RedriveRuns(dead_letters.view.root).read(str(run))
    return set() if read is None else done_places(read[1])


def _places(marks: Mapping[str, Any] | None, dead_letters: DeadLetters) -> Iterator[Place]:
    """The places of an entry's marks that the queues have."""
    for name, ranges in ({} if marks is None else marks["handled"]).items():
        queue_id = int(name)
        least, end = dead_letters.view.queue_bounds(dead_letters.topic, queue_id)
        for low, high in ranges:
            for offset in range(max(low, least), min(high, end)):
                yield queue_id, offset


def _row(place: Place, message: "MessageExt | None", *, handled: bool) -> AckRow:
    if message is None:
        return AckRow(place[1], None, None, None, handled, None)
    return AckRow(
        message.queue_offset,
        message.msg_id,
        message.store_timestamp,
        reason_text(message),
        handled,
        None,
    )
