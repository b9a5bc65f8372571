"""``dlq ack``: marking dead letters as handled, and removing marks.

A mark changes nothing in the queue: the log is append-only, and a consumer of the dead letter topic
still reads every message.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import UNDO_OF, change_note
from rmqctl.cli.change_steps import carry_out
from rmqctl.cli.left_out import tell_unreadable
from rmqctl.cli.opening import open_for_reading
from rmqctl.dlq.dead_letters import DeadLetters
from rmqctl.dlq.rows import AckRow
from rmqctl.errors import NotFound
from rmqctl.retry.failures import reason_text
from storage.clock import now_ms
from storage.configs.dlq_acks import DlqAcksFile, Marks, Range
from storage.configs.journal import CHANGE_ID, Journal

from .run import dead_letter_at

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.format.message import MessageExt

    from .plan import Choice, Place

WHAT = "ack"


def acknowledge(cli: "Cli", group: str, choice: "Choice") -> None:
    """Mark the selected dead letters that are not marked yet."""
    with open_for_reading(cli) as broker:
        dead_letters = DeadLetters(broker, group)
        chosen = [
            message for message in choice.take(dead_letters) if not dead_letters.is_handled(message)
        ]
        plan = [_row(message, handled=True) for message in chosen]
        tell_unreadable(cli.left_out, dead_letters.unreadable, dead_letters.bodies)
    places = [(message.queue_id, message.queue_offset) for message in chosen]
    _change(cli, group, dead_letters.topic, places, plan, handled=True)


def unmark(cli: "Cli", group: str, choice: "Choice") -> None:
    """Remove the marks of named dead letters."""
    with open_for_reading(cli) as broker:
        dead_letters = DeadLetters(broker, group)
        named = choice.take(dead_letters, handled=True)
        chosen = [message for message in named if dead_letters.is_handled(message)]
        plan = [_row(message, handled=False) for message in chosen]
        tell_unreadable(cli.left_out, dead_letters.unreadable, dead_letters.bodies)
    places = [(message.queue_id, message.queue_offset) for message in chosen]
    _change(cli, group, dead_letters.topic, places, plan, handled=False)


def undo_last(cli: "Cli", group: str) -> None:
    """Undo the group's last ``dlq ack`` that was not undone yet.

    NotFound without one.
    """
    with open_for_reading(cli) as broker:
        dead_letters = DeadLetters(broker, group)
        undoable = (
            (entry[CHANGE_ID], places)
            for entry in _acks(Journal(broker.view.root).entries(), group)
            if (places := _still_marked(entry, dead_letters))
        )
        change_id, places = next(undoable, (None, []))
        if change_id is None:
            raise NotFound(f"no 'dlq ack' of group {group} is left to undo")
        plan = [
            _row_of(dead_letter_at(broker.view, dead_letters.topic, place), place, handled=False)
            for place in places
        ]
    _change(cli, group, dead_letters.topic, places, plan, handled=False, undo_of=change_id)


def _acks(entries: Iterable[Mapping[str, Any]], group: str) -> list[Mapping[str, Any]]:
    """The marks of a group that were not undone, newest first."""
    acks = {
        entry[CHANGE_ID]: entry
        for entry in entries
        if entry.get("what") == WHAT and entry.get("group") == group
    }
    undone = {entry[UNDO_OF] for entry in acks.values() if entry.get(UNDO_OF)}
    return [
        entry
        for change_id, entry in reversed(acks.items())
        if entry["new"] is not None and change_id not in undone
    ]


def _still_marked(entry: Mapping[str, Any], dead_letters: DeadLetters) -> "list[Place]":
    """The marks of an entry that exist: none if its writer was killed before the write."""
    return [
        (int(queue_id), offset)
        for queue_id, ranges in entry["new"]["handled"].items()
        for low, high in ranges
        for offset in range(low, high)
        if offset in dead_letters.handled_in(int(queue_id))
    ]


def _change(
    cli: "Cli",
    group: str,
    topic: str,
    places: "list[Place]",
    plan: list[AckRow],
    *,
    handled: bool,
    undo_of: int | None = None,
) -> None:
    root = cli.store.path
    check = None if cli.flag("dry_run") else refuse_beside_java(root)

    def note(changed: Marks) -> None:
        entry = change_note(cli, group=group, topic=topic, what=WHAT, undo_of=undo_of)
        marks = {"handled": changed}
        old, new = (None, marks) if handled else (marks, None)
        Journal(root).append({**entry, "old": old, "new": new}, now_ms())

    def apply() -> Iterator[AckRow]:
        if check is not None:
            check()
        marks: dict[int, list[Range]] = {}
        for queue_id, offset in places:
            marks.setdefault(queue_id, []).append((offset, offset + 1))
        with open_for_reading(cli) as broker:
            file = DlqAcksFile(root, broker.view)
            (file.mark if handled else file.unmark)(topic, marks, note)
        return (row._replace(applied=True) for row in plan)

    dead_letters = f"{len(plan)} dead letter{'' if len(plan) == 1 else 's'} of {group}"
    question = (
        f"Mark {dead_letters} as handled?" if handled else f"Remove the marks of {dead_letters}?"
    )
    carry_out(cli, AckRow, plan, apply, question=question, execute_by_default=True)


def _row(message: "MessageExt", *, handled: bool) -> AckRow:
    return AckRow(
        message.queue_offset,
        message.msg_id,
        message.store_timestamp,
        reason_text(message),
        handled,
        None,
    )


def _row_of(message: "MessageExt | None", place: "Place", *, handled: bool) -> AckRow:
    if message is None:
        return AckRow(place[1], None, None, None, handled, None)
    return _row(message, handled=handled)
