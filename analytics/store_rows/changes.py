"""The journal of changes: what was changed, by which command and user, and whether it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from storage.configs.journal_changes import Change, Changes, moves_of

from .row_types import ChangeRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .wanted import Wanted


def change_rows(broker: EmbeddedBroker, name: str, wanted: Wanted) -> Iterator[ChangeRow]:
    """All changes, oldest first; a change of progress has a row for each queue."""
    changes = Changes(broker.view.root)
    for change in changes.all:
        for row in _rows(changes, change, name):
            if wanted.takes_group(row.group) and wanted.takes_topic(row.topic):
                yield row


def _rows(changes: Changes, change: Change, name: str) -> Iterator[ChangeRow]:
    entry = change.entry
    row = ChangeRow(
        name,
        change.change_id,
        change.at_timestamp,
        change.text("command"),
        change.text("group"),
        change.text("topic"),
        None,
        None,
        None,
        change.text("user"),
        change.text("host"),
        change.text("reason"),
        changes.undone_by.get(change.change_id),
        change.applied,
        change.text("what"),
        _json(entry.get("old")),
        _json(entry.get("new")),
    )
    moves = list(moves_of(change))
    for move in moves:
        yield row._replace(
            group=move.group,
            topic=move.topic,
            queue_id=move.queue_id,
            old_offset=move.old,
            new_offset=move.new,
            what=None,
            old=None,
            new=None,
        )
    if not moves:
        yield row


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
