"""Copies of one log: a slave beside its master, a snapshot beside its store.

Folders and names say nothing about that. The first records of log files do: they carry a broker's
address, an id and a time, so two logs that share one of them are copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .stores import StoreRef

MOST_MARKS: Final = 64
"""Files whose first records are looked at, the last ones of a log."""


class LooksUp(Protocol):
    """What reads records by their log offsets: a store's view, or its log alone."""

    def look_message_by_offset(self, commitlog_offset: int) -> MessageExt | None:
        """The record that begins there, None if none does."""


class OneLog(Protocol):
    """What tells copies of one log."""

    @property
    def ref(self) -> StoreRef:
        """The store."""

    @property
    def log(self) -> tuple[int, int]:
        """Begin and end of its commit log."""

    @property
    def marks(self) -> frozenset[str]:
        """Marks of the first records of its log files."""


S = TypeVar("S", bound=OneLog)


def log_marks(view: StoreView, begin: int, end: int) -> Iterator[str]:
    """The marks of the first records of the last log files between two log offsets."""
    size = view.config.mapped_file_size_commit_log
    for start in range(begin, end, size)[-MOST_MARKS:]:
        mark = mark_at(view, start)
        if mark is not None:
            yield mark


def mark_at(view: LooksUp, place: int) -> str | None:
    """The mark of the record that begins at a log offset; None if none does."""
    found = view.look_message_by_offset(place)
    return None if found is None else mark_of(found, place)


def mark_of(found: MessageExt, place: int) -> str:
    """The mark of a record at a log offset."""
    who = f"{found.offset_msg_id} {found.msg_id}"
    return f"{place} {who} {found.store_timestamp} {found.body_crc}"


def without_copies(logs: Sequence[S]) -> tuple[list[S], list[str]]:
    """Leave out stores whose log is the beginning of another store's log: slaves, and copies.

    Gives a sentence for each of them, too.
    """
    kept: set[int] = set()
    owners: dict[str, tuple[int, S]] = {}
    notes = []
    for number, one in sorted(enumerate(logs), key=lambda log: -log[1].log[1]):
        known = [owners[mark] for mark in one.marks if mark in owners]
        if not known:
            for mark in one.marks:
                owners[mark] = len(kept), one
            kept.add(number)
        else:
            _, master = min(known, key=lambda owner: owner[0])
            notes.append(
                f"{one.ref.broker}: left out, it is a copy of {master.ref.broker}, "
                f"which goes {master.log[1] - one.log[1]} bytes further"
            )
    return [one for number, one in enumerate(logs) if number in kept], notes
