"""From whole records to what an append needs: which queue, which tag, which keys, since when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from storage.format.head_matrix import HEAD_TYPES
from storage.format.layout import HEAD_SIZES, MESSAGE_MAGIC_V1
from storage.format.prepared_exact import ExactColumns
from storage.format.prepared_many import Longs
from storage.verify.records import RecordBlock, TopicNames

_SEPARATOR: Final = b"\x02"


class ExactEncoder:
    """Makes batches for the appender. Remembers the hashes of the tags that it has met."""

    def __init__(self, queues: Sequence[tuple[str, int]]) -> None:
        """``queues`` are those that records may go to; a batch names them by their number here."""
        self._queues = list(queues)
        self._topics = TopicNames()
        fields = [topic.encode("utf-8", "surrogateescape") for topic, _ in self._queues]
        self._topic_numbers = np.array([self._topics.number(name) for name in fields], np.int64)
        self._topic_sizes = np.array([len(name) for name in fields], np.int64)
        self._known_tags: dict[bytes, int] = {b"": 0}

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
        image = bytearray().join(records)
        size = np.fromiter(map(len, records), np.int64, len(records))
        start = np.cumsum(size) - size
        heads = self._heads(image, start)
        block = self._block(image, start, size, queue_numbers, heads)
        owner, hashes = block.index_keys(np.arange(len(size)), self._topics)
        present, numbers = np.unique(queue_numbers, return_inverse=True)
        return ExactColumns(
            image,
            start,
            size,
            [self._queues[number] for number in present.tolist()],
            numbers.astype(np.int64) if len(present) > 1 else None,
            None,
            block.tags_codes(self._known_tags),
            None,
            hashes,
            np.bincount(owner, minlength=len(size)).astype(np.int64),
            store_timestamps=block.store_timestamp,
            queue_offsets=queue_offsets,
            may_go_back=may_go_back,
        )

    def _heads(self, image: bytearray, start: Longs) -> dict[str, Longs]:
        """The fields that are wanted of each record, whatever the form of its hosts."""
        whole = np.frombuffer(image, np.uint8)
        every = [
            np.ndarray((max(0, len(image) - kind.itemsize + 1),), kind, whole, strides=(1,))
            for kind in HEAD_TYPES
        ]
        first = every[0][start]
        hosts = first["sys_flag"].astype(np.int64) >> 4 & 3
        found = {
            name: first[name].astype(np.int64)
            for name in ("magic", "queue_id", "sys_flag", "store_timestamp", "body_length")
        }
        for kind in (1, 2, 3):
            rows = np.flatnonzero(hosts == kind)
            if len(rows):
                wide = every[kind][start[rows]]
                for name in ("store_timestamp", "body_length"):
                    found[name][rows] = wide[name]
        found["head_size"] = np.array(HEAD_SIZES, np.int64)[hosts]
        return found

    def _block(
        self,
        image: bytearray,
        start: Longs,
        size: Longs,
        queue_numbers: Longs,
        heads: dict[str, Longs],
    ) -> RecordBlock:
        width = np.where(heads["magic"] == MESSAGE_MAGIC_V1, 1, 2)
        behind = start + heads["head_size"] + np.maximum(heads["body_length"], 0)
        behind += width + self._topic_sizes[queue_numbers] + 2
        data = bytes(image)
        properties = [
            _SEPARATOR + data[at:end]
            for at, end in zip(behind.tolist(), (start + size).tolist(), strict=True)
        ]
        unknown = np.zeros(len(start), np.int64)
        return RecordBlock(
            offset=start,
            size=size,
            queue_id=heads["queue_id"],
            queue_offset=unknown,
            physical_offset=unknown,
            sys_flag=heads["sys_flag"],
            store_timestamp=heads["store_timestamp"],
            topic=self._topic_numbers[queue_numbers],
            properties=properties,
        )
