"""Copies of one log: a slave beside its master, a snapshot beside its store.

Folders and names say nothing about that. The first records of log files do: they carry a broker's
address, an id and a time, so two logs that share one of them are copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from storage.readonly import StoreView

if TYPE_CHECKING:
    from .stores import StoreRef

_MARKS: Final = 64


class OneLog(Protocol):
    """What tells copies of one log: see ``StoreLog``."""

    @property
    def ref(self) -> StoreRef:
        """The store."""

    @property
    def log(self) -> tuple[int, int]:
        """Begin and end of its commit log."""

    @property
    def marks(self) -> frozenset[str]:
        """Marks of the first records of its log files."""


class StoreLog(NamedTuple):
    """A store's log: its begin and end, and the marks of the first records of its last files."""

    ref: StoreRef
    log: tuple[int, int]
    marks: frozenset[str]


S = TypeVar("S", bound=OneLog)


def store_log(ref: StoreRef) -> StoreLog:
    """Look at the log of a store. Raises the errors of ``StoreView.open``."""
    with StoreView.open(ref.path) as view:
        view.reads_log_at_random()
        log = view.log_min_offset(), view.log_max_offset()
        return StoreLog(ref, log, frozenset(log_marks(view, *log)))


def log_marks(view: StoreView, begin: int, end: int) -> Iterator[str]:
    """The marks of the first records of the last log files between two log offsets."""
    size = view.config.mapped_file_size_commit_log
    for start in range(begin, end, size)[-_MARKS:]:
        mark = mark_at(view, start)
        if mark is not None:
            yield mark


def mark_at(view: StoreView, place: int) -> str | None:
    """The mark of the record that begins at a log offset; None if none does."""
    found = view.look_message_by_offset(place)
    if found is None:
        return None
    who = f"{found.offset_msg_id} {found.msg_id}"
    return f"{place} {who} {found.store_timestamp} {found.body_crc}"


def without_copies(logs: Sequence[S]) -> tuple[list[S], list[str]]:
    """Leave out stores whose log is the beginning of another store's log: slaves, and copies.

    Gives a sentence for each of them, too.
    """
    kept: list[S] = []
    notes = []
    for one in sorted(logs, key=lambda log: -log.log[1]):
        master = next((other for other in kept if other.marks & one.marks), None)
        if master is None:
            kept.append(one)
        else:
            notes.append(
                f"{one.ref.broker}: left out, it is a copy of {master.ref.broker}, "
                f"which goes {master.log[1] - one.log[1]} bytes further"
            )
    return [one for one in logs if one in kept], notes
