"""The change journal of a store, read once: its changes, which were done, which were undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from storage.coordination.forks import made_once
from storage.errors import CorruptFileError, StoreVersionError

from .journal import AT_TIMESTAMP, CHANGE_ID, MOVES, PREVIOUS, UNDO_OF, Journal
from .progress import ProgressFile

ProgressPlace = tuple[str, str, int]
"""Group, topic, queue id."""


class Change(NamedTuple):
    """One entry of the journal."""

    change_id: int
    at_timestamp: int
    entry: Mapping[str, Any]
    applied: bool | None
    """Whether it was done; None if our file of progress does not tell."""

    def text(self, name: str) -> str | None:
        """A text field of the entry, None if it is absent."""
        value = self.entry.get(name)
        return None if value is None else str(value)

    @property
    def who(self) -> str | None:
        """``user@host``, as far as recorded."""
        known = [text for text in (self.text("user"), self.text("host")) if text is not None]
        return "@".join(known) or None


class Move(NamedTuple):
    """A change of a group's progress in one queue; None is no progress."""

    change: Change
    group: str
    topic: str
    queue_id: int
    old: int | None
    new: int | None

    @property
    def place(self) -> ProgressPlace:
        """Group, topic and queue of the progress."""
        return self.group, self.topic, self.queue_id


class Changes:
    """The journal of one store as of its first use. Reads nothing before that."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @made_once
    def all(self) -> list[Change]:
        """All changes, oldest first."""
        entries = list(Journal(self.root).entries())
        done, certain = self._done(entries)
        found = []
        for entry in entries:
            change_id = int(entry[CHANGE_ID])
            applied: bool | None = MOVES not in entry or change_id in done
            if not applied and not certain:
                applied = None
            found.append(Change(change_id, int(entry[AT_TIMESTAMP]), entry, applied))
        return found

    @made_once
    def undone_by(self) -> dict[int, int]:
        """Which change undid which one."""
        done = {change.change_id for change in self.all if change.applied}
        return undone_by((change.entry for change in self.all), done)

    @made_once
    def last_moves(self) -> dict[ProgressPlace, Move]:
        """The last applied change of each queue's progress."""
        return {move.place: move for move in self.moves()}

    def moves(self) -> Iterator[Move]:
        """The applied changes of progress, oldest first."""
        for change in self.all:
            if change.applied:
                yield from moves_of(change)

    def _done(self, entries: list[dict[str, Any]]) -> tuple[set[int], bool]:
        """The applied changes of progress, and whether the list is complete."""
        if not any(MOVES in entry for entry in entries):
            return set(), True
        try:
            in_force = ProgressFile(self.root).read().change_id
        except (CorruptFileError, StoreVersionError):
            return done_moves(entries, None), False
        return done_moves(entries, in_force), True


def moves_of(change: Change) -> Iterator[Move]:
    """The queues whose progress a change moves; empty for other changes."""
    for move in change.entry.get(MOVES, ()):
        yield Move(change, move["group"], move["topic"], move["queue_id"], move["old"], move["new"])


def done_moves(entries: Iterable[Mapping[str, Any]], in_force: int | None) -> set[int]:
    """The changes of offsets that were done. A process that was killed before the write did none.

    ``in_force`` is the change that the file of offsets names as its last one. Each later change
    names the one that it found, so every change that was done is named.
    """
    done = {entry[PREVIOUS] for entry in entries if entry.get(PREVIOUS) is not None}
    return done if in_force is None else done | {in_force}


def undone_by(entries: Iterable[Mapping[str, Any]], done: set[int]) -> dict[int, int]:
    """Which change took which one back, by change id; an undo that was not done does not count."""
    return {
        entry[UNDO_OF]: entry[CHANGE_ID]
        for entry in entries
        if entry.get(UNDO_OF) is not None and (MOVES not in entry or entry[CHANGE_ID] in done)
    }
