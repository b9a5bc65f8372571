"""Carving: the new store is built beside its target path, and moved there once it is whole."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from broker.new_store import create_store
from rmqctl.admin.left_out import Named
from storage.configs.consumer_offsets import (
    OffsetTable,
    consumer_offset_file,
    encode_offsets,
    split_topic_at_group,
)
from storage.configs.subscription_groups import subscription_groups_file
from storage.configs.topics import topics_file
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.layout import CREATED
from storage.record_batch.record_batch import MARK_LIGHT
from storage.tools.carve.columns import ExactEncoder
from storage.tools.carve.new_store import ExactWriter, staged_folder
from storage.tools.carve.ranges import QueueRange, RangeReader, TakenRange
from storage.tools.carve.records import with_properties

from .carve_plan import CarvePlan
from .carve_rows import CarvedRow, CarvePlanRow
from .odd_bodies import OddBodies, odd_rows
from .property_masks import masking_of, with_texts
from .record_transform import RecordTransform, UnmaskableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rmqctl.admin.changes import Warn
    from rmqctl.admin.progress import Phase
    from storage.config import StoreConfig
    from storage.readonly import StoreView
    from storage.record_batch.record_batch import RecordBatch

_AT_ONCE: Final = 1 << 16
"""Most records per append, as records may be short."""


class Carving:
    """One carve. ``keeps_offsets``: messages keep their queue offsets; else they are numbered from
    0."""

    def __init__(
        self,
        view: "StoreView",
        plan: CarvePlan,
        remaker: RecordTransform,
        *,
        keeps_offsets: bool,
        config: "StoreConfig",
        now_ms: int,
        warn: "Warn",
        phase: "Phase",
        fs: FileSystem | None = None,
    ) -> None:
        self._now_ms = now_ms
        self._phase = phase
        self._view = view
        self._plan = plan
        self._remaker = remaker
        self._keeps = keeps_offsets
        self._config = config
        self._fs = fs or FileSystem()
        self._ranges = [wanted for wanted in plan.ranges if wanted.begin < wanted.end]
        self._counts = np.zeros(len(self._ranges), np.int64)
        self._lost = np.zeros(len(self._ranges), np.int64)
        self._left_out = Named(warn)
        self._odd = OddBodies(warn, unpacks=remaker.unpacks)
        self._is_ascii = np.array([wanted.topic.isascii() for wanted in self._ranges], np.bool_)
        self._masking = masking_of(remaker)
        self._ends: list[int] = []
        self._marks = [self._marks_of(wanted) for wanted in self._ranges]
        self._below = [np.zeros(len(marks), np.int64) for marks in self._marks]

    @property
    def lost(self) -> int:
        """Messages that could not be read or masked."""
        return int(self._lost.sum())

    def plan_rows(self) -> list[CarvePlanRow]:
        """The plan, queue by queue."""
        return [
            CarvePlanRow(
                wanted.topic,
                wanted.queue_id,
                wanted.begin,
                wanted.end,
                wanted.end - wanted.begin if self._keeps else None,
            )
            for wanted in self._plan.ranges
        ]

    def run(self, target: Path) -> Iterator[CarvedRow]:
        """Carry it out, then yield a row for each queue."""
        with staged_folder(target, self._fs) as folder:
            create_store(folder, self._config, fs=self._fs, is_locked=True)
            # Old messages of the source must not be deleted by a cleaning service.
            self._fs.unlink(folder / OURS / CREATED)
            self._fs.sync_dir(folder / OURS)
            self._put_messages(folder)
            self._put_settings(folder)
        numbers = {wanted[:2]: number for number, wanted in enumerate(self._ranges)}
        for wanted in self._plan.ranges:
            number = numbers.get(wanted[:2])
            count = 0 if number is None else int(self._counts[number])
            begin = end = None
            if number is not None and count:
                begin, end = wanted.begin if self._keeps else 0, self._ends[number]
            lost = 0 if number is None else int(self._lost[number])
            yield CarvedRow(*wanted[:4], count, begin, end, lost, True)

    # -- messages -----------------------------------------------------------------------------

    def _put_messages(self, folder: Path) -> None:
        begins = {wanted[:2]: wanted.begin for wanted in self._ranges if wanted.begin}
        encoder = ExactEncoder([wanted[:2] for wanted in self._ranges])
        reader = RangeReader(self._view, self._ranges)
        total = self._view.log_max_offset() - self._view.log_min_offset()
        tick = self._phase("carve", total)
        with ExactWriter(folder, self._config, begins if self._keeps else {}, self._fs) as writer:
            for taken in reader.stretches():
                for number, _ in taken.lost:
                    self._lost[number] += 1
                for part in taken.parts(_AT_ONCE):
                    self._put_part(part, encoder, writer)
                tick(taken.log_bytes)
            self._left_out.finish()
            self._odd.finish()
            self._ends = [writer.next_offset(*wanted[:2]) for wanted in self._ranges]

    def _put_part(self, taken: TakenRange, encoder: ExactEncoder, writer: ExactWriter) -> None:
        block = encoder.read(taken.buffer, taken.sizes)
        if not self._remaker.changes_nothing or (block.marks & MARK_LIGHT).any():
            taken = self._remade(taken, block)
            block = encoder.read(taken.buffer, taken.sizes)
        for row in odd_rows(taken.buffer, block):
            at = int(block.place[row])
            self._odd.look(bytes(taken.buffer[at : at + int(block.size[row])]))
        if len(block):
            offsets = taken.queue_offsets if self._keeps else None
            columns = encoder.columns_of(
                taken.buffer, block, taken.queue_numbers, offsets, may_go_back=True
            )
            writer.put(columns)
        self._count(taken)

    def _remade(self, taken: TakenRange, block: "RecordBatch") -> TakenRange:
        texts: list[bytes | None] = [None] * len(block)
        if self._masking is not None:
            is_ascii = self._is_ascii[taken.queue_numbers]
            texts = self._masking.texts(taken.buffer, block, is_ascii)
        known = [text for text in texts if text is not None]
        if len(known) == len(texts):
            buffer, sizes = with_texts(taken.buffer, block, known)
            return taken._replace(buffer=buffer, sizes=sizes)
        kept: list[int] = []
        records: list[bytes] = []
        for row, record in enumerate(taken.records()):
            made: bytes | None
            if (text := texts[row]) is not None:
                made = with_properties(record, int(block.properties_length[row]), text)
            else:
                try:
                    made = self._remaker.remake(record)
                except UnmaskableError as error:
                    self._left_out.add(f"left out {error}")
                    self._lost[taken.queue_numbers[row]] += 1
                    continue
            if made is not None:
                kept.append(row)
                records.append(made)
        rows = np.array(kept, np.int64)
        return taken._replace(
            buffer=bytearray().join(records),
            sizes=np.fromiter(map(len, records), np.int64, len(records)),
            queue_numbers=taken.queue_numbers[rows],
            queue_offsets=taken.queue_offsets[rows],
        )

    def _count(self, taken: TakenRange) -> None:
        """Count messages, and those before each committed offset of a group."""
        self._counts += np.bincount(taken.queue_numbers, minlength=len(self._ranges))
        if self._keeps:
            return
        for number in np.unique(taken.queue_numbers).tolist():
            if len(self._marks[number]):
                offsets = taken.queue_offsets[taken.queue_numbers == number]
                self._below[number] += np.searchsorted(offsets, self._marks[number])

    # -- settings and progress ----------------------------------------------------------------

    def _put_settings(self, folder: Path) -> None:
        now = self._now_ms
        topics = topics_file(folder, self._fs)
        table = topics.read_for_change(now)
        for name, topic in self._plan.topics.items():
            table.put(name, topic, now)
        topics.save(table)
        if self._plan.groups:
            groups = subscription_groups_file(folder, self._fs)
            group_table = groups.read_for_change(now)
            for name, group in self._plan.groups.items():
                group_table.put(name, group, now)
            groups.save(group_table)
        offsets = self._new_offsets()
        if offsets:
            consumer_offset_file(folder, self._fs).save(encode_offsets({}, offsets))

    def _new_offsets(self) -> OffsetTable:
        """Progress in the new store: the first unread message of each group."""
        numbers = {wanted[:2]: number for number, wanted in enumerate(self._ranges)}
        new: OffsetTable = {}
        for key, queues in self._plan.offsets.items():
            parts = split_topic_at_group(key)
            assert parts is not None
            for queue_id, offset in queues.items():
                number = numbers.get((parts[0], queue_id))
                if number is not None and self._counts[number]:
                    new.setdefault(key, {})[queue_id] = self._new_offset(number, offset)
        return new

    def _new_offset(self, number: int, offset: int) -> int:
        if not self._keeps:
            mark = int(np.searchsorted(self._marks[number], offset))
            return int(self._below[number][mark])
        return clamped(offset, self._ranges[number], self._ends[number])

    def _marks_of(self, wanted: QueueRange) -> "NDArray[np.int64]":
        """Committed offsets of groups in a queue, ascending."""
        found = {
            queues[wanted.queue_id]
            for key, queues in self._plan.offsets.items()
            if key.startswith(f"{wanted.topic}@") and wanted.queue_id in queues
        }
        return np.array(sorted(found), np.int64)


def clamped(offset: int, wanted: QueueRange, new_end: int) -> int:
    """An offset limited to the copied range, if it was within the old range."""
    if offset < wanted.begin and wanted.begin > wanted.min_offset:
        return wanted.begin
    if offset > new_end and (wanted.end < wanted.max_offset or offset <= wanted.max_offset):
        return new_end
    return offset


def progress_sentences(plan: CarvePlan) -> Sequence[str]:
    """Sentences about copied settings and progress."""
    groups = {parts[1] for key in plan.offsets if (parts := split_topic_at_group(key))}
    names = sorted(groups | set(plan.groups))
    if not names:
        return ["no group has progress in these topics"]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"settings and progress of groups are copied, too: {shown}"]
