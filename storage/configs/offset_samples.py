"""Samples of the progress of all groups: whether a group moves, and how fast.

``<store>/rmqctl/samples/00000001.jsonl`` and so on, lines of JSON with a checksum
(checksummed_json). The first line of a file holds the positions of all groups and queues; the
others hold the changes since the line before. Each process that samples begins a file of its own,
so within a file the second of two lines holds everything that happened between them. Written
without a sync: a lost sample is taken again in ten seconds. One process at a time writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from storage import native
from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import MAX_TIME, maybe, members, table, whole

from .checksummed_json import body_of, seal, unseal
from .number_tables import number_table

SAMPLES_FOLDER: Final = "samples"
MOST_FILES: Final = 32
MOST_BYTES: Final = 1 << 20
"""Bytes of all files together, unless three of them need more."""
FILE_BYTES: Final = 256 << 10
"""Bytes from which on a file is followed by a new one; at least four times its first line."""

_OFFSETS: Final = table(table(maybe(whole()), ids=True))
SAMPLE: Final = members({"at": whole(0, MAX_TIME), "committed": _OFFSETS, "ends": _OFFSETS})
"""The shape of every line."""

Table = Mapping[str, Mapping[int, int]]
"""``topic@group``, or a topic, to queue id to offset."""


Change = tuple[int, int | None]
"""When an offset was first observed (ms), and the offset; None: there was none."""


_NOTHING: Final[Mapping[int, list[Change]]] = {}
_Observed = Mapping[str, Mapping[int, int | None]]


def _note_changes(rows: list[list[Change]], offsets: list[int | None], at: int, /) -> None:
    """Add to each row what was observed at a time, where it is another offset than its last."""
    for row, offset in zip(rows, offsets, strict=True):
        if not row or row[-1][1] != offset:
            row.append((at, offset))


note_changes: Final = native.form("note_changes", _note_changes)


class WatchedQueue(NamedTuple):
    """A period (ms) in which a process has sampled again and again."""

    begin: int
    end: int


class SampleHistory:
    """The history in the samples, by queue: each offset with the time of its first observation."""

    def __init__(self) -> None:
        self.watched: list[WatchedQueue] = []
        """In the order of time; between two of them no process has sampled."""
        self._committed: dict[str, dict[int, list[Change]]] = {}
        self._ends: dict[str, dict[int, list[Change]]] = {}

    def places(self) -> list[tuple[str, int]]:
        """All queues with progress: ``topic@group`` and queue id."""
        return [(key, queue_id) for key, row in self._committed.items() for queue_id in row]

    def committed(self, key: str, queue_id: int) -> list[Change]:
        """Progress of ``topic@group`` in a queue, in the order of time."""
        return self.queues_of(key).get(queue_id, [])

    def queues_of(self, key: str) -> Mapping[int, list[Change]]:
        """Progress of ``topic@group`` by queue, each in the order of time."""
        return self._committed.get(key, _NOTHING)

    def seen_at(self, key: str, queue_id: int, at_ms: int) -> int | None:
        """The last observed progress at or before a time within a sampled period.

        So it is some seconds old at most. None if no process sampled then, and without progress
        then.
        """
        if not any(time.begin <= at_ms <= time.end for time in self.watched):
            return None
        before = [offset for at, offset in self.committed(key, queue_id) if at <= at_ms]
        return before[-1] if before else None

    def ends(self, topic: str, queue_id: int) -> list[Change]:
        """Max offsets of a queue."""
        return self._ends.get(topic, _NOTHING).get(queue_id, [])

    def ends_of(self, topic: str) -> Mapping[int, list[Change]]:
        """Max offsets of a topic's queues, each in the order of time."""
        return self._ends.get(topic, _NOTHING)

    def add_seen(self, at: int, committed: _Observed, ends: _Observed, *, is_first: bool) -> None:
        """Take in what was observed at a time (ms); the first line of a file replaces the end of
        earlier files."""
        if is_first:
            self.watched.append(WatchedQueue(at, at))
        self.watched[-1] = self.watched[-1]._replace(end=at)
        for known, observed in ((self._committed, committed), (self._ends, ends)):
            if is_first:
                _forget(known, observed, at)
            for key, queues in observed.items():
                row = known.get(key)
                if row is None:
                    known[key] = {queue_id: [(at, offset)] for queue_id, offset in queues.items()}
                    continue
                if [*row] == [*queues]:  # mostly: few steps, as there may be 50,000 of them
                    note_changes([*row.values()], [*queues.values()], at)
                    continue
                for queue_id, offset in queues.items():
                    changes = row.get(queue_id)
                    if changes is None:
                        row[queue_id] = [(at, offset)]
                    elif not changes or changes[-1][1] != offset:
                        changes.append((at, offset))

    def forget_before(self, since_ms: int) -> None:
        """Forget older samples, except the values at that time."""
        for known in (self._committed, self._ends):
            for row in known.values():
                for changes in row.values():
                    while len(changes) > 1 and changes[1][0] <= since_ms:
                        del changes[0]
        self.watched = [time for time in self.watched if time.end >= since_ms]

    def forget_after(self, until_ms: int) -> None:
        """Forget later samples."""
        for known in (self._committed, self._ends):
            for row in known.values():
                for changes in row.values():
                    while changes and changes[-1][0] > until_ms:
                        changes.pop()
        self.watched = [
            time._replace(end=min(time.end, until_ms))
            for time in self.watched
            if time.begin <= until_ms
        ]


class OffsetSamples:
    """The samples of one store. Reading needs nothing; one process at a time may write."""

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self.path = root / OURS / SAMPLES_FOLDER
        self._fs = fs or FileSystem()
        self._file: Path | None = None
        self._size = self._first_size = 0
        self._known: tuple[Table, Table] = ({}, {})

    def files(self) -> list[Path]:
        """List the files, oldest first."""
        return sorted(path for path in self.path.glob("*.jsonl") if path.stem.isdigit())

    def append(self, committed: Table, ends: Table, now_ms: int) -> bool:
        """Write the changes since the last call; False if there are none. Raises OSError,
        and the next call begins a new file then."""
        if self._file is None or self._size >= max(FILE_BYTES, 4 * self._first_size):
            self._begin(committed, ends, now_ms)
            return True
        changed = tuple(
            _changed(before, after)
            for before, after in zip(self._known, (committed, ends), strict=True)
        )
        if not any(changed):
            return False
        line = seal({"at": now_ms, "committed": changed[0], "ends": changed[1]}) + b"\n"
        file, self._file = self._file, None
        self._write(file, line, self._size)
        self._file = file
        self._size += len(line)
        self._known = (committed, ends)
        return True

    def read(self, since_ms: int) -> SampleHistory:
        """Read the samples from ``since_ms`` on, and the positions at that time.

        Nothing if there are no samples; unreadable lines are left out.
        """
        files: list[list[_Sample]] = []
        for path in reversed(self.files()):
            try:
                data = read_bounded(path)
            except (OSError, CorruptFileError):
                continue
            lines = list(_lines(data))
            if lines:
                files.append(lines)
                if lines[0].at <= since_ms:
                    break
        history = SampleHistory()
        for lines in reversed(files):
            for number, line in enumerate(lines):
                history.add_seen(*line, is_first=not number)
        return history

    def _begin(self, committed: Table, ends: Table, now_ms: int) -> None:
        self._file = None
        self._fs.make_dirs(self.path)
        files = self.files()
        file = self.path / f"{int(files[-1].stem) + 1 if files else 1:08d}.jsonl"
        line = seal({"at": now_ms, "committed": committed, "ends": ends}) + b"\n"
        try:
            self._write(file, line, 0)
        except OSError:  # on a full disk each call would leave one more
            with suppress(OSError):
                self._fs.unlink(file)
            raise
        self._file = file
        self._size = self._first_size = len(line)
        self._known = (committed, ends)
        self._tidy(files)

    def _tidy(self, older: list[Path]) -> None:
        """Delete files without a sample, and the oldest: more than a number of them, or of
        bytes."""
        number = total = 0
        for path in reversed(older):
            if not _has_sample(path):
                self._fs.unlink(path)
                continue
            number += 1
            total += path.stat().st_size
            if number >= MOST_FILES or (number >= 3 and total > MOST_BYTES):
                self._fs.unlink(path)

    def _write(self, path: Path, data: bytes, offset: int) -> None:
        fd = self._fs.open(path, writable=True, create=True)
        try:
            self._fs.write(fd, data, offset)
        finally:
            self._fs.close(fd)


class _Sample(NamedTuple):
    """A line."""

    at: int
    committed: _Observed
    ends: _Observed


def _has_sample(path: Path) -> bool:
    """Whether a file has a whole first line, without which nothing of it is read; True for a file
    that cannot be read now."""
    try:
        return body_of(read_bounded(path).partition(b"\n")[0]) is not None
    except (OSError, CorruptFileError):
        return True


def _lines(data: bytes) -> Iterator[_Sample]:
    """The lines of a file as far as they are whole: later ones build on them."""
    for line in data.split(b"\n"):
        sample = _usual_sample(line)
        if sample is None:
            entry = unseal(line, SAMPLE)
            if entry is None:
                return
            sample = _Sample(entry["at"], _by_number(entry["committed"]), _by_number(entry["ends"]))
        yield sample


def _by_number(observed: Mapping[str, Mapping[str, int | None]]) -> _Observed:
    return {
        key: dict(zip(map(int, queues), queues.values(), strict=True))
        for key, queues in observed.items()
    }


_AT: Final = b'{"at":'
_COMMITTED: Final = b',"committed":'
_ENDS: Final = b',"ends":'


def _usual_sample(line: bytes) -> _Sample | None:
    """A line as ``OffsetSamples`` writes it; None for others, and where nothing is compiled."""
    body = body_of(line)
    if body is None or not body.startswith(_AT):
        return None
    begin = body.find(_COMMITTED, 0, 40)
    number = body[len(_AT) : begin]
    if begin < 0 or not number.isdigit() or number[:1] == b"0" or int(number) > MAX_TIME:
        return None
    committed = number_table(body, begin + len(_COMMITTED), None)
    if committed is None or not body.startswith(_ENDS, committed[1]):
        return None
    ends = number_table(body, committed[1] + len(_ENDS), None)
    if ends is None or body[ends[1] :] != b"}":
        return None
    return _Sample(int(number), committed[0], ends[0])


def _forget(
    known: Mapping[str, Mapping[int, list[Change]]],
    observed: _Observed,
    at: int,
) -> None:
    """Queues that a first line does not contain were gone by then."""
    for key, row in known.items():
        for queue_id, changes in row.items():
            if changes[-1][1] is not None and queue_id not in observed.get(key, ()):
                changes.append((at, None))


def _changed(before: Table, after: Table) -> dict[str, dict[int, int | None]]:
    """The differences: offsets that are new or changed, None for those that are gone."""
    found: dict[str, dict[int, int | None]] = {}
    if before == after:
        return found
    for key in before.keys() | after.keys():
        old, new = before.get(key, {}), after.get(key, {})
        if old != new:
            queues: dict[int, int | None] = {q: n for q, n in new.items() if old.get(q) != n}
            queues.update((queue_id, None) for queue_id in old if queue_id not in new)
            found[key] = queues
    return found
