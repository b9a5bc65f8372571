"""Progress of groups that no file contains any more, from all remaining evidence.

The evidence: the files (storage.tools.config_recovery.progress_files), notes of consumers, the
journal, samples, and what groups have finished (contiguous.py), each with its source and its bound.
The result is never more than the group had committed. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from storage.configs.consumer_offsets import OffsetTable, split_topic_at_group, topic_at_group
from storage.configs.journal import AT_TIMESTAMP, CHANGE_ID, Journal
from storage.configs.offset_samples import OffsetSamples
from storage.configs.pending_commits import notes_in, read_notes
from storage.configs.progress import ProgressFile
from storage.format.names import MEMBERS_FOLDER, OURS
from storage.tools.config_recovery.progress_files import (
    FileState,
    ProgressFiles,
    read_progress_files,
)

from .contiguous import SETTLE_MS, ConsumedOffsets, ContiguousOffsets, Place
from .evidence import Bound, Evidence, EvidenceChange, Source, best_sight, last_turn

if TYPE_CHECKING:
    from pathlib import Path

    from storage.readonly import StoreView
    from storage.tools.config_recovery.progress_files import SavedOffsets


class Recovered(NamedTuple):
    """A queue of a group: what is committed, and what is known of the lost progress.

    ``offset`` None: there is no evidence. ``sight`` names the source. ``handed`` is the furthest
    message that the group surely received; the progress may be before or after it.
    """

    place: Place
    present: int | None
    offset: int | None
    low: int
    high: int
    sight: Evidence | None
    handed: ConsumedOffsets | None

    @property
    def handed_offset(self) -> int | None:
        """The offset after the furthest message that the group surely received, finished or not."""
        if self.handed is None:
            return None
        return self.handed.offset + (1 if self.handed.done else 0)

    def as_handed(self) -> Recovered:
        """Use that as the offset where nothing else is known."""
        offset, by = self.handed_offset, self.handed
        if self.offset is not None or offset is None or by is None:
            return self
        offset = min(offset, self.high)
        sight = Evidence(offset, Source(by.source), by.evidence, Bound.HANDED, by.at)
        return self._replace(offset=offset, sight=sight)


class LostProgress:
    """All evidence of a store's progress, read once. Reading changes nothing."""

    def __init__(self, view: StoreView, dealt: Iterable[ConsumedOffsets]) -> None:
        """Read a store; ``dealt`` is what messages show of what groups have finished.

        Raises StoreVersionError for a progress file of a later rmqctl.
        """
        self._view = view
        self._root = view.root
        self.files = read_progress_files(view.root)
        self.present = _present(view.root, self.files)
        self._turns: dict[Place, list[EvidenceChange]] = {}
        self._sights: dict[Place, list[Evidence]] = {}
        self._of_files()
        self._of_notes()
        self._of_journal()
        self._of_samples()
        since = {place: last.at for place, t in self._turns.items() if (last := last_turn(t))}
        self._finished = ContiguousOffsets(dealt, since)

    @property
    def damaged(self) -> bool:
        """Whether there was progress that cannot be read."""
        ours = self.files.ours.state
        return ours is not FileState.WHOLE and (
            self.files.java.lost or ours is not FileState.MISSING
        )

    def recovered(
        self, queues: Mapping[str, Iterable[int]], *, settle_ms: int = SETTLE_MS
    ) -> list[Recovered]:
        """What is known of each queue of each topic that a group has read, sorted.

        ``queues`` are those of topics beyond the ones in the evidence itself.
        """
        places = {*self.present, *self._turns, *self._sights, *self._finished.places()}
        for group, topic in {place[:2] for place in places}:
            places.update((group, topic, queue_id) for queue_id in queues.get(topic, ()))
        return [self._one(place, settle_ms) for place in sorted(places)]

    def _one(self, place: Place, settle_ms: int) -> Recovered:
        _, topic, queue_id = place
        low, high = self._view.queue_bounds(topic, queue_id)
        sight = best_sight(self._sights.get(place, ()), self._turns.get(place, ()))
        known = low if sight is None else max(low, sight.offset)
        reached = self._finished.reached(place, known, settle_ms)
        if reached is not None:
            last = reached.last
            source = Source(last.source)
            sight = Evidence(reached.offset, source, last.evidence, Bound.AT_LEAST, last.at)
        offset = None if sight is None else sight.offset
        if sight is not None and sight.offset > high:  # a log that lost its end
            offset = high
            sight = sight._replace(
                evidence=f"{sight.evidence}: {sight.offset}, cut to the end", bound=Bound.AT_LEAST
            )
        handed = self._finished.handed(place)
        return Recovered(place, self.present.get(place), offset, low, high, sight, handed)

    # -- sources of evidence ------------------------------------------------------------------

    def _of_files(self) -> None:
        files = self.files
        if not files.ours.lost:
            return  # Java's file is written from it
        self._saw(files.java, Source.FILE, Bound.EXACTLY_AT)
        self._saw(files.ours, Source.OFFSETS, Bound.AT_LEAST)
        if files.java.lost:
            self._saw(files.bak, Source.BAK, Bound.AT_LEAST)

    def _saw(self, file: SavedOffsets, source: Source, bound: Bound) -> None:
        evidence = str(file.path.relative_to(self._root))
        if file.cut_at is not None:
            evidence += f", whole up to {file.cut_at}"
        for place, offset in _places(file.offsets).items():
            sight = Evidence(offset, source, evidence, bound, file.written_timestamp)
            self._sights.setdefault(place, []).append(sight)

    def _of_notes(self) -> None:
        for path in notes_in(self._root / OURS / MEMBERS_FOLDER):
            for (key, queue_id), progress in read_notes(path):
                place = _place(key, queue_id)
                if place is not None and progress.offset is not None:
                    sight = Evidence(
                        progress.offset,
                        Source.NOTE,
                        str(path.relative_to(self._root)),
                        Bound.AT_LEAST,
                        generation=progress.generation,
                    )
                    self._sights.setdefault(place, []).append(sight)

    def _of_journal(self) -> None:
        entries = [entry for entry in Journal(self._root).entries() if "moves" in entry]
        done = {entry.get("previous") for entry in entries}
        readable = not self.files.ours.lost
        if readable:
            done.add(ProgressFile(self._root).read().change_id)
        for entry in entries:
            change_id = int(entry[CHANGE_ID])
            certain = change_id in done
            if not certain and (readable or entry is not entries[-1]):
                continue  # it was noted, and never done
            for move in entry["moves"]:
                place = (move["group"], move["topic"], move["queue_id"])
                turn = EvidenceChange(
                    int(entry[AT_TIMESTAMP]),
                    move["old"],
                    move["new"],
                    certain,
                    move.get("generation"),
                    change_id,
                )
                self._turns.setdefault(place, []).append(turn)

    def _of_samples(self) -> None:
        history = OffsetSamples(self._root).read(0)
        for key, queue_id in history.places():
            place = _place(key, queue_id)
            seen = history.committed(key, queue_id)
            if place is None or not seen:
                continue
            at, offset = seen[-1]
            if offset is not None:
                sight = Evidence(offset, Source.SAMPLE, "rmqctl/samples", Bound.EXACTLY_AT, at)
                self._sights.setdefault(place, []).append(sight)
            for (_, old), (at, new) in pairwise(seen):
                if old is not None and (new is None or new < old):
                    self._turns.setdefault(place, []).append(EvidenceChange(at, old, new))


def _present(root: Path, files: ProgressFiles) -> dict[Place, int]:
    """Progress that can still be read."""
    if files.ours.state is FileState.WHOLE:
        return _places(ProgressFile(root).read().offsets())
    if files.ours.state is FileState.MISSING and not files.java.lost:
        return _places(files.java.offsets)
    return {}


def _places(table: OffsetTable) -> dict[Place, int]:
    return {
        place: offset
        for key, queues in table.items()
        for queue_id, offset in queues.items()
        if offset >= 0 and (place := _place(key, queue_id)) is not None
    }


def _place(key: str, queue_id: int) -> Place | None:
    parts = split_topic_at_group(key)
    return None if parts is None else (parts[1], parts[0], queue_id)


def progress_key(place: Place) -> tuple[str, int]:
    """The key of a queue in storage.configs.progress."""
    group, topic, queue_id = place
    return topic_at_group(topic, group), queue_id


def targets_of(rows: Iterable[Recovered]) -> dict[Any, int]:
    """What to write, from rows of which something is known."""
    return {progress_key(row.place): row.offset for row in rows if row.offset is not None}
