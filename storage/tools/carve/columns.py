"""Columns for an append, made from whole records: queue, tag, keys and time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from storage.format.prepared_exact import ExactColumns
from storage.record_batch.arrays import Longs
from storage.record_batch.queue_numbers import TopicNames
from storage.record_batch.record_batch import RecordBatch, read_records


class ExactEncoder:
    """Makes batches for the appender. Caches the topics of its records."""

    def __init__(self, queues: Sequence[tuple[str, int]]) -> None:
        """``queues`` are the targets of records; a batch names them by their number here."""
        self._queues = list(queues)
        self._topics = TopicNames()

    def columns(
        self,
        records: Sequence[bytes],
        queue_numbers: Longs,
        queue_offsets: Longs | None,
        *,
        may_go_back: bool = False,
    ) -> ExactColumns:
        """Prepare whole records of the queues with these numbers, one or more, in log order.

        ``queue_offsets`` None: they get new ones.
        """
        size = np.fromiter(map(len, records), np.int64, len(records))
        buffer = bytearray().join(records)
        return self.columns_of(
            buffer, self.read(buffer, size), queue_numbers, queue_offsets, may_go_back=may_go_back
        )

    def read(self, buffer: bytearray, sizes: Longs) -> RecordBatch:
        """Read whole records, one after the other."""
        return read_records(memoryview(buffer), 0, np.cumsum(sizes) - sizes, sizes, self._topics)

    def columns_of(
        self,
        buffer: bytearray,
        block: RecordBatch,
        queue_numbers: Longs,
        queue_offsets: Longs | None,
        *,
        may_go_back: bool = False,
    ) -> ExactColumns:
        """As :meth:`columns`, of the records in ``buffer`` that were read as ``block``."""
        size = block.size
        owner, hashes = block.index_keys()
        present, numbers = np.unique(queue_numbers, return_inverse=True)
        return ExactColumns(
            buffer,
            block.place,
            size,
            [self._queues[number] for number in present.tolist()],
            numbers.astype(np.int64) if len(present) > 1 else None,
            None,
            block.tags_code,
            None,
            hashes,
            np.bincount(owner, minlength=len(size)).astype(np.int64),
            store_timestamps=block.store_timestamp,
            queue_offsets=queue_offsets,
            may_go_back=may_go_back,
        )
