"""The dead letters that were handled: ``<store>/rmqctl/handled.json``.

RocketMQ cannot take a message out of a queue, so "handled" is a mark beside the queue and rmqctl's
own: a broker ignores it, and the dead letters stay where they are. For each queue of a topic the
file has a cursor, before which everything is handled, and ranges after it:

    {"version":1,"topics":{"%DLQ%readers":{"0":
        {"cursor":17,"beyond":[[19,20],[25,31]],"witness":[30,81920]}}}}

The witness is a marked message: queue offset and commit log offset. If another record lies there,
or there is none yet, the queue was deleted and began anew; its marks are void then. The file is one
line with a checksum (checksummed_json), replaced as a whole under ``rmqctl/handled.lock``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.coordination.locks import ProcessLock
from storage.errors import StoreNotWritableError
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import items, maybe, members, rows, table, whole
from storage.format.versions import FORMATS

from .checksummed_json import read_sealed, seal
from .config_file import replace_file

if TYPE_CHECKING:
    from storage.readonly import StoreView

HANDLED_FILE: Final = "handled.json"
HANDLED_LOCK: Final = "handled.lock"
VERSION: Final = FORMATS[HANDLED_FILE]
_REMEDY: Final = (
    "'rmqctl store repair' makes it anew of the journal; or remove it to begin with all dead "
    "letters unhandled"
)

_RANGES: Final = rows(items(whole(0), whole(0)))
_MARKS: Final = members(
    {"cursor": whole(0), "beyond": _RANGES}, {"witness": maybe(items(whole(0), whole(0)))}
)
_SHAPE: Final = members({"topics": table(table(_MARKS, ids=True))})

Range = tuple[int, int]
"""Queue offsets from the first number up to the second, exclusive."""
Marks = dict[int, list[Range]]
"""Ranges by queue id."""
Change = tuple[bool, int, int]
"""True if a range was marked, False if its mark was removed; and the range."""


class AckedOffsets(NamedTuple):
    """The marks of one queue: all offsets before ``cursor``, and the ranges of ``beyond``.

    The ranges are sorted, do not touch each other nor the cursor. ``witness`` are the queue offset
    and the commit log offset of a marked message.
    """

    cursor: int = 0
    beyond: tuple[Range, ...] = ()
    witness: tuple[int, int] | None = None

    def __contains__(self, offset: object) -> bool:
        if not isinstance(offset, int):
            return False
        return offset < self.cursor or any(low <= offset < high for low, high in self.beyond)

    def within(self, low: int, high: int) -> int:
        """Count the marked offsets from ``low`` up to, not including, ``high``."""
        return sum(max(0, min(high, b) - max(low, a)) for a, b in self.ranges())

    def ranges(self) -> list[Range]:
        """Give the marks as ranges, sorted."""
        return ([(0, self.cursor)] if self.cursor else []) + list(self.beyond)

    def with_marks(self, ranges: Iterable[Range]) -> AckedOffsets:
        """Mark ranges, too."""
        return _of(_merged([*self.ranges(), *ranges]), self.witness)

    def without_marks(self, ranges: Iterable[Range]) -> AckedOffsets:
        """Remove marks."""
        left = self.ranges()
        for low, high in _merged(list(ranges)):
            left = [part for a, b in left for part in ((a, min(b, low)), (max(a, high), b))]
            left = [(a, b) for a, b in left if a < b]
        return _of(left, self.witness)


NOTHING_HANDLED: Final = AckedOffsets()


class DlqAcksFile:
    """The file of one store. Safe for threads and processes; holds no descriptor open.

    ``view`` reads the store, so that marks of deleted queues do not count; without it all do.
    """

    def __init__(
        self, root: Path, view: StoreView | None = None, fs: FileSystem | None = None
    ) -> None:
        self.path = root / OURS / HANDLED_FILE
        self._view = view
        self._fs = fs or FileSystem()
        self._lock = ProcessLock(root / OURS / HANDLED_LOCK)

    def read(self, topic: str) -> dict[int, AckedOffsets]:
        """Give the marks of a topic's queues. Raises CorruptFileError and StoreVersionError."""
        return self._of_this_queue(topic, self._load().get(topic, {}))

    def all(self) -> dict[str, dict[int, AckedOffsets]]:
        """Give the marks of all topics, those of deleted queues too. Raises as ``read``."""
        return self._load()

    def mark(
        self,
        topic: str,
        marks: Mapping[int, Iterable[Range]],
        before_write: Callable[[Marks], None] | None = None,
    ) -> Marks:
        """Mark ranges as handled; gives those that were not yet. On the device when this returns.

        ``before_write`` gets the same under the lock, to note it in the journal; it is not called
        where nothing changes. Raises what ``read`` raises, and StoreNotWritableError.
        """
        return self._change(topic, marks, before_write, handled=True)

    def unmark(
        self,
        topic: str,
        marks: Mapping[int, Iterable[Range]],
        before_write: Callable[[Marks], None] | None = None,
    ) -> Marks:
        """Remove marks; gives those that there were. As ``mark`` otherwise."""
        return self._change(topic, marks, before_write, handled=False)

    def _change(
        self,
        topic: str,
        marks: Mapping[int, Iterable[Range]],
        before_write: Callable[[Marks], None] | None,
        *,
        handled: bool,
    ) -> Marks:
        try:
            self._fs.make_dirs(self.path.parent)
            with self._lock.held():
                table = self._load()
                queues = table[topic] = self._of_this_queue(topic, table.get(topic, {}))
                changed: Marks = {}
                for queue_id, ranges in marks.items():
                    wanted = _merged(list(ranges))
                    known = queues.get(queue_id, NOTHING_HANDLED)
                    found = known.with_marks(wanted) if handled else known.without_marks(wanted)
                    if found != known:
                        changed[queue_id] = _difference(found, known, handled=handled)
                        queues[queue_id] = self._witnessed(topic, queue_id, found)
                if changed:
                    if before_write is not None:
                        before_write(changed)
                    self._save(table)
                return changed
        except OSError as error:
            raise StoreNotWritableError(self.path, error.strerror or str(error)) from error

    def _of_this_queue(
        self, topic: str, queues: dict[int, AckedOffsets]
    ) -> dict[int, AckedOffsets]:
        """Leave out the marks of queues that have begun anew."""
        view = self._view
        if view is None:
            return queues
        found = {}
        for queue_id, marks in queues.items():
            offset, log_offset = marks.witness or (-1, 0)
            unit = view.unit(topic, queue_id, offset)
            if offset < view.max_offset_in_queue(topic, queue_id) and (
                unit is None or unit[0] == log_offset
            ):
                found[queue_id] = marks
        return found

    def _witnessed(self, topic: str, queue_id: int, marks: AckedOffsets) -> AckedOffsets:
        """Take the last marked message as the witness, if it is there."""
        last = marks.ranges()[-1][1] - 1 if marks.ranges() else None
        if self._view is None or last is None:
            return marks
        unit = self._view.unit(topic, queue_id, last)
        return marks if unit is None else marks._replace(witness=(last, unit[0]))

    def _load(self) -> dict[str, dict[int, AckedOffsets]]:
        entry = read_sealed(self.path, VERSION, _SHAPE, remedy=_REMEDY)
        if entry is None:
            return {}
        return {
            topic: {int(queue_id): _decoded(marks) for queue_id, marks in queues.items()}
            for topic, queues in entry["topics"].items()
        }

    def _save(self, table: dict[str, dict[int, AckedOffsets]]) -> None:
        replace_file(self._fs, self.path, seal(_entry_of(table)))
        self._fs.sync_dir(self.path.parent)


def handled_entry(changes: Mapping[str, Mapping[int, Iterable[Change]]]) -> dict[str, Any]:
    """Give the content of the file after changes that were made one after the other."""
    table: dict[str, dict[int, AckedOffsets]] = {}
    for topic, queues in changes.items():
        row = table[topic] = {}
        for queue_id, done in queues.items():
            marks = NOTHING_HANDLED
            for handled, low, high in done:
                take = marks.with_marks if handled else marks.without_marks
                marks = take([(low, high)])
            row[queue_id] = marks
    return _entry_of(table)


def _entry_of(table: Mapping[str, Mapping[int, AckedOffsets]]) -> dict[str, Any]:
    topics = {
        topic: {queue_id: marks._asdict() for queue_id, marks in queues.items()}
        for topic, queues in table.items()
    }
    return {"version": VERSION, "topics": topics}


def _decoded(marks: dict[str, Any]) -> AckedOffsets:
    ranges = tuple((a, b) for a, b in marks["beyond"])
    witness = marks.get("witness")
    return AckedOffsets(marks["cursor"], ranges, None if witness is None else tuple(witness))


def _merged(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for low, high in sorted(ranges):
        if low >= high:
            continue
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _of(ranges: list[Range], witness: tuple[int, int] | None = None) -> AckedOffsets:
    """Make marks of ranges that are sorted and apart."""
    if ranges and ranges[0][0] == 0:
        return AckedOffsets(ranges[0][1], tuple(ranges[1:]), witness)
    return AckedOffsets(0, tuple(ranges), witness)


def _difference(found: AckedOffsets, known: AckedOffsets, *, handled: bool) -> list[Range]:
    more, less = (found, known) if handled else (known, found)
    return more.without_marks(less.ranges()).ranges()
