"""Rebuilding consume queues from the log, byte for byte as the broker would have written them.

One walk of the log serves any number of queues. The new files lie beside the store until
``storage.tools.rebuild.replacement`` puts them in their place; the old files are only read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from storage.configs.deleted_topics import read_deleted_topics
from storage.files.fs import FileSystem
from storage.files.read_files import ReadOnlyFiles
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.delay import parse_delay_levels
from storage.format.names import CONSUMEQUEUE, CONSUMEQUEUE_EXT, file_name
from storage.queue.ext import ConsumeQueueExt
from storage.queue.written_end import written_units
from storage.record_batch.queue_numbers import QueueNames

from .file_ends import is_zero
from .log_units import LogRuns, Progress, units_by_queue
from .observed_delays import seen_delays
from .queue_build import OldUnits, QueueBuild, Units
from .queue_files import ComparedUnits, WrittenUnits
from .units import DelayTimes

if TYPE_CHECKING:
    from storage.readonly import StoreView

QueueKey = tuple[str, int]
"""Topic and queue id."""


class RebuiltQueue(NamedTuple):
    """A queue's files as they are, and as they will be. File names are without folders."""

    topic: str
    queue_id: int
    units_before: int
    """Units in its files as they are, fillers too."""
    units_after: int
    changed: int
    """Units that are missing in its files or differ there."""
    fillers: int
    """Units of ``units_after`` in the place of messages that the log has lost."""
    next_before: int
    """Queue offset after the last unit, before and after."""
    next_after: int
    log_from: int | None
    """Commit log offset of the first record that has a unit in it; None if there is none."""
    log_to: int | None
    """Commit log offset after the last one."""
    replaced: tuple[str, ...]
    """Existing files with wrong content."""
    made: tuple[str, ...]
    """Files that are missing."""
    taken_away: tuple[str, ...]
    """Files that should not exist."""

    @property
    def is_same(self) -> bool:
        """Whether its files are right, byte for byte."""
        return not (self.replaced or self.made or self.taken_away)


def plan_queues(
    view: StoreView,
    wanted: Collection[QueueKey] | None = None,
    *,
    topics: Collection[str] | None = None,
    beside_writers: bool = False,
    progress: Progress | None = None,
) -> list[RebuiltQueue]:
    """Compare queues with the log and give what rebuilding would change. Writes nothing.

    ``wanted`` names queues, ``topics`` all queues of some topics; None of both means all, also
    those without a folder. Sorted by name. ``beside_writers`` ignores what follows a queue's last
    unit: it may have been written meanwhile. ``progress`` is called with bytes done and bytes in
    all. Reads the whole log; raises OSError, CorruptFileError (rmqctl's own files).
    """
    rebuild = _Rebuild(view, wanted, topics, None, None)
    rebuild.beside_writers = beside_writers
    return rebuild.run(progress)


def rebuild_queues(
    view: StoreView,
    out: Path,
    wanted: Collection[QueueKey] | None = None,
    *,
    topics: Collection[str] | None = None,
    progress: Progress | None = None,
    fs: FileSystem | None = None,
) -> list[RebuiltQueue]:
    """The same, and make files that are to be replaced or made, as ``out/<topic>/<queue>/<file>``.

    They are on the device when this returns. ``out`` must be an empty folder on the store's file
    system. For a store that no process writes meanwhile.
    """
    return _Rebuild(view, wanted, topics, out, fs or FileSystem()).run(progress)


def rebuild_queue(
    view: StoreView, topic: str, queue_id: int, out: Path, fs: FileSystem | None = None
) -> RebuiltQueue:
    """:func:`rebuild_queues` for one queue; walks the whole log for it."""
    return rebuild_queues(view, out, [(topic, queue_id)], fs=fs)[0]


class _Tee:
    """Compares units, and writes them where there is a target."""

    def __init__(self, compared: ComparedUnits, written: WrittenUnits | None) -> None:
        self.compared = compared
        self.written = written

    def put(self, first: int, units: Units, store_timestamp: int) -> None:
        self.compared.put(first, units, store_timestamp)
        if self.written is not None:
            self.written.put(first, units, store_timestamp)


class _Rebuild:
    def __init__(
        self,
        view: StoreView,
        wanted: Collection[QueueKey] | None,
        topics: Collection[str] | None,
        out: Path | None,
        fs: FileSystem | None,
    ) -> None:
        self._view = view
        self._wanted = None if wanted is None else frozenset(wanted)
        self._topics = None if topics is None else frozenset(topics)
        self._out = out
        self._fs = fs or FileSystem()
        self._files = view.files.apart()
        self._log_min = view.log_min_offset()
        self._ext = None
        if (view.root / CONSUMEQUEUE_EXT).is_dir():
            self._ext = ConsumeQueueExt(self._files)
        self._builds: dict[QueueKey, tuple[QueueBuild, _Tee, ReadOnlyFiles]] = {}
        self.beside_writers = False

    def run(self, progress: Progress | None) -> list[RebuiltQueue]:
        view = self._view
        names = QueueNames()
        runs = LogRuns(self._files.log, view.log_max_offset(), names, progress)
        levels = parse_delay_levels(view.config.message_delay_level)
        delays = DelayTimes(levels, seen_delays(view, self._files))
        deleted = read_deleted_topics(view.root)
        for number, columns in units_by_queue(runs, names, delays, deleted, self._is_wanted):
            build = self._build(names.keys[number])
            if build is not None:
                build.take(columns)
        for key in self._present():
            self._build(key)
        found = []
        for key in sorted(self._builds):
            since = deleted.get(key[0], 0)  # before it lie records of a topic that was deleted
            lost = [(max(start, since), end) for start, end in runs.lost if end > since]
            found.append(self._finish(key, lost))
        return found

    def _present(self) -> Iterable[QueueKey]:
        """Wanted queues that have a folder, or were requested by name."""
        found = {key for key in self._files.queue_folders() if self._is_wanted(*key)}
        return found | (self._wanted or set())

    def _is_wanted(self, topic: str, queue_id: int) -> bool:
        if self._wanted is None and self._topics is None:
            return True
        if self._topics is not None and topic in self._topics:
            return True
        return self._wanted is not None and (topic, queue_id) in self._wanted

    def _build(self, key: QueueKey) -> QueueBuild | None:
        found = self._builds.get(key)
        if found is None:
            row = self._files.queue(*key)
            if row is None:
                return None
            old = OldUnits(row)
            written = None
            if self._out is not None:
                folder = self._out / key[0] / str(key[1])
                written = WrittenUnits(self._fs, folder, row.file_size)
            tee = _Tee(ComparedUnits(old), written)
            build = QueueBuild(*key, old, tee, self._log_min, self._ext)
            found = self._builds[key] = (build, tee, row)
        return found[0]

    def _finish(self, key: QueueKey, lost: list[tuple[int, int]]) -> RebuiltQueue:
        build, tee, row = self._builds[key]
        build.finish(lost)
        compared = tee.compared
        present = set(row.relist())
        surplus = present.difference(compared.files, build.kept_files)
        end = build.next_offset * CQ_STORE_UNIT_SIZE
        if self.beside_writers:
            surplus = {file for file in surplus if file < end}
        differing = compared.differing | {
            file for file in compared.files & present if self._has_more(row, file, end)
        }
        if tee.written is not None:
            tee.written.finish(differing)
        before = written_units(row)
        oldest = row.offsets()[0] // CQ_STORE_UNIT_SIZE if present else before
        first = build.kept_files[0] // CQ_STORE_UNIT_SIZE if build.kept_files else build.first
        return RebuiltQueue(
            *key,
            units_before=max(0, before - oldest),
            units_after=0 if first is None else build.next_offset - first,
            changed=compared.changed,
            fillers=build.fillers,
            next_before=before,
            next_after=build.next_offset,
            log_from=build.log_from,
            log_to=build.log_to,
            replaced=_names(differing & present),
            made=_names(compared.files - present),
            taken_away=_names(surplus),
        )

    def _has_more(self, row: ReadOnlyFiles, file: int, end: int) -> bool:
        """Whether a file has another length, or holds anything after the queue's last unit."""
        path = Path(row.path(file))
        if path.stat().st_size != row.file_size:
            return True
        if self.beside_writers:
            return False
        return not is_zero(self._fs, path, max(0, end - file), row.file_size)


def _names(files: set[int]) -> tuple[str, ...]:
    return tuple(file_name(file) for file in sorted(files))


def folder_of(topic: str, queue_id: int) -> str:
    """The folder of a queue's files, relative to the store."""
    return f"{CONSUMEQUEUE}/{topic}/{queue_id}"
