"""Runs that were killed: what they sent and did not mark.

The next redrive of the group marks it before it sends anything, and a plan counts it as handled. A
mark that a user removed after its message was sent stays removed. A run whose dead letter topic was
deleted since is given up: what it sent is gone from the queue.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from storage.clock import now_ms
from storage.configs.dlq_acks import DlqAcksFile, Marks
from storage.configs.journal import SETTLE, Journal
from storage.configs.journal_marks import TimedMark, journalled_marks, marks_before_sends
from storage.configs.redrive_runs import SETTLED, RedriveRuns
from storage.format.message import dlq_topic

from .dead_letters import Place, as_marks
from .redrive_run import Task, progress_of, task_from, was_deleted_since

if TYPE_CHECKING:
    from storage.readonly import StoreView


class Unsettled(NamedTuple):
    """A run whose last attempt did not end by itself."""

    run: str
    sent: set[Place]
    """Dead letters that it sent, and whose marks no user removed since."""
    is_void: bool
    """Whether the dead letter topic was deleted since it began: it cannot go on."""


def unsettled(view: "StoreView", group: str, but: str | None = None) -> Iterator[Unsettled]:
    """The unsettled runs of a group, oldest first, without the run ``but``; one may be running."""
    runs = RedriveRuns(view.root)
    for name in runs.names():
        read = None if name == but or runs.is_settled(name) else runs.read(name)
        if read is not None and read[0]["group"] == group:
            task = task_from(read[0])
            sent = _still_marked(view.root, task, _sent_times(view, task, read[1]))
            yield Unsettled(name, sent, was_deleted_since(view, task))


def settle(view: "StoreView", group: str, note: Mapping[str, Any]) -> set[Place]:
    """Mark what unsettled runs sent, so that no other run sends it again; gives what that is.

    ``note`` is the head of the journal entry, which is written where marks change. Hold the lock of
    all runs meanwhile.
    """
    topic = dlq_topic(group)
    settled: set[Place] = set()
    for run, sent, _ in unsettled(view, group):
        entry = {**note, "group": group, "topic": topic, "what": SETTLE, "old": None}
        DlqAcksFile(view.root, view).mark(
            topic, as_marks(sent), partial(_journal, Journal(view.root), entry, run)
        )
        with RedriveRuns(view.root).receipts(run) as written:
            written.write(SETTLED)
        settled |= sent
    return settled


def _journal(journal: Journal, entry: Mapping[str, Any], run: str, changed: Marks) -> None:
    journal.append({**entry, "new": {"run": run, "handled": changed}}, now_ms())


def _sent_times(view: "StoreView", task: Task, receipts: list[dict[str, Any]]) -> dict[Place, int]:
    """When a run sent its dead letters, in epoch ms."""
    progress = progress_of(view, task, receipts)
    noted = {
        (receipt["queue_id"], receipt["queue_offset"]): receipt["redriven_timestamp"] or 0
        for receipt in receipts
        if receipt.get("applied")
    }
    times = {place: noted[place] for place in progress.done}
    return {**times, **{place: sent.timestamp for place, sent in progress.late.items()}}


def _still_marked(root: Path, task: Task, times: Mapping[Place, int]) -> set[Place]:
    """What was sent, without that whose mark a user removed since."""
    if not times:
        return set()
    topic = dlq_topic(task.group)
    marks = list(journalled_marks(Journal(root)))
    before = marks_before_sends(marks, topic, task.run, times, task.handled)
    removals = [
        (number, mark)
        for number, mark in enumerate(marks)
        if isinstance(mark, TimedMark) and mark.topic == topic and not mark.change[0]
    ]
    return {place for place in times if not _is_removed(removals, place, before[place])}


def _is_removed(removals: list[tuple[int, TimedMark]], place: Place, since: int) -> bool:
    """Whether a mark was removed after so many marks of the journal."""
    queue_id, offset = place
    return any(
        number >= since and mark.queue_id == queue_id and low <= offset < high
        for number, mark in removals
        for _, low, high in (mark.change,)
    )
