"""What follows from records of the log, for thousands of them at once.

The answers of ``storage.writing.dispatch.read_request`` (CommitLog.checkMessageAndReturnSize and
the dispatchers), but that a unit points at where its record lies, not at where the record says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.files.read_files import ReadMap
from storage.format.head_matrix import HEAD_TYPES
from storage.format.java_hash import unsigned_java_hash
from storage.format.layout import HEAD_SIZES, MESSAGE_MAGIC_V1
from storage.writing.dispatch import is_possible_topic

from .windows import Longs, group_rows, windows

_HEAD_SIZES: Final = np.array(HEAD_SIZES, np.int64)


@dataclass(slots=True)
class Run:
    """Records one behind the other in one log file; item i of each column is of record i.

    ``place`` is where the record lies in the file. ``queue`` is a number of :class:`QueueNames`.
    ``properties_at`` and ``properties_length`` tell where its properties lie in the file.
    """

    place: Longs
    size: Longs
    queue: Longs
    queue_offset: Longs
    sys_flag: Longs
    store_timestamp: Longs
    properties_at: Longs
    properties_length: Longs

    def __len__(self) -> int:
        return len(self.place)


class QueueNames:
    """Numbers for the queues that records name."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._by_key: dict[tuple[str, int], int] = {}
        self.keys: list[tuple[str, int]] = []
        """Topic and queue id of each number."""
        self._possible: list[bool] = []
        self._topic_hashes: list[int] = []

    def number(self, name: bytes, queue_id: int) -> int:
        """The number of a queue; a new one if it was not met before."""
        found = self._numbers.get((name, queue_id))
        if found is None:
            topic = name.decode("utf-8", "replace")
            found = self._numbers[name, queue_id] = self.number_of(topic, queue_id)
        return found

    def number_of(self, topic: str, queue_id: int) -> int:
        """The same by a topic's text."""
        key = (topic, queue_id)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = len(self.keys)
            self.keys.append(key)
            self._possible.append(is_possible_topic(topic) and queue_id >= 0)
            self._topic_hashes.append(unsigned_java_hash(topic + "#"))
        return found

    def possible(self) -> NDArray[np.bool_]:
        """Whether there can be such a queue, by number."""
        return np.array(self._possible, np.bool_)

    def topic_hashes(self) -> NDArray[np.uint32]:
        """Hashes of ``topic#``, by number."""
        return np.array(self._topic_hashes, np.uint32)


def read_run(file: ReadMap, position: int, sizes: list[int], names: QueueNames) -> Run:
    """Take the columns of records from ``position`` of a file on; their lengths were checked."""
    size = np.array(sizes, np.int64)
    place = position + np.cumsum(size) - size
    heads = _heads_at(file, place, 0)
    sys_flag = heads["sys_flag"].astype(np.int64)
    store_timestamp = heads["store_timestamp"].astype(np.int64)
    body_length = heads["body_length"].astype(np.int64)
    hosts = sys_flag >> 4 & 3
    if hosts.any():
        for kind in (1, 2, 3):
            rows = np.flatnonzero(hosts == kind)
            if len(rows):
                wide = _heads_at(file, place[rows], kind)
                store_timestamp[rows] = wide["store_timestamp"]
                body_length[rows] = wide["body_length"]
        head_size: Longs | int = _HEAD_SIZES[hosts]
    else:
        head_size = HEAD_SIZES[0]
    octets = np.frombuffer(file.view, np.uint8)
    topic_at = place + head_size + np.maximum(body_length, 0)
    topic_length = octets[topic_at].astype(np.int64)
    topic_at += 1
    long_names = heads["magic"] != MESSAGE_MAGIC_V1
    if long_names.any():  # version 2: the length is a short
        rows = np.flatnonzero(long_names)
        topic_length[rows] = topic_length[rows] << 8 | octets[topic_at[rows]]
        topic_at[rows] += 1
    properties_at = topic_at + topic_length + 2
    queue_id = heads["queue_id"].astype(np.int64)
    width = -(-max(8, int(topic_length.max())) // 8) * 8
    topics = windows(file.view, topic_at, topic_length, width)
    first, group = group_rows(topics, queue_id << 16 | topic_length)
    numbers = [
        names.number(topics[row, : int(topic_length[row])].tobytes(), int(queue_id[row]))
        for row in first.tolist()
    ]
    return Run(
        place,
        size,
        np.array(numbers, np.int64)[group],
        heads["queue_offset"].astype(np.int64),
        sys_flag,
        store_timestamp,
        properties_at,
        place + size - properties_at,
    )


def _heads_at(file: ReadMap, places: Longs, hosts: int) -> NDArray[Any]:
    """The fixed fields at many places; ``hosts`` chooses the form."""
    head = HEAD_TYPES[hosts]
    # An item at every byte; without fields, so that each is copied as a whole.
    every: NDArray[Any] = np.ndarray(
        (max(0, file.length - head.itemsize + 1),), f"V{head.itemsize}", file.view, strides=(1,)
    )
    return every[places].view(head)
