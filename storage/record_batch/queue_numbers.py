"""Numbers of the topics and queues in records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from storage.format.dispatch import is_possible_topic
from storage.format.java_hash import unsigned_java_hash

from .arrays import Longs


class TopicNames:
    """Numbers of topics, in the order of their first records, and the hashes of their names."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, tuple[int, int]] = {}
        self.names: list[str] = []

    def number_and_hash(self, name: bytes) -> tuple[int, int]:
        """Give the topic's number, a new one for a new topic, and the unsigned hash of ``topic#``,
        with which the hash of each key begins."""
        found = self._numbers.get(name)
        if found is None:
            text = name.decode("utf-8", "replace")
            found = self._numbers[name] = len(self.names), unsigned_java_hash(text + "#")
            self.names.append(text)
        return found


class QueueNames:
    """Numbers of queues; a queue is a topic's number in ``topics`` and a queue id."""

    def __init__(self) -> None:
        self.topics = TopicNames()
        self._by_key: dict[tuple[str, int], int] = {}
        self._by_code: dict[int, int] = {}
        self.keys: list[tuple[str, int]] = []
        """Topic and queue id of each number."""
        self._possible: list[bool] = []

    def number_of(self, topic: str, queue_id: int) -> int:
        """Give the number of a queue, a new one for a new queue."""
        key = (topic, queue_id)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = len(self.keys)
            self.keys.append(key)
            self._possible.append(is_possible_topic(topic) and queue_id >= 0)
        return found

    def numbers(self, topics: Longs, queue_ids: Longs) -> Longs:
        """Give the numbers of many queues: ``topics`` are numbers, ``queue_ids`` have 32 bits."""
        codes = topics << 32 | queue_ids & 0xFFFFFFFF
        distinct = np.unique(codes)
        for code in distinct.tolist():
            if code not in self._by_code:
                queue_id = ((code & 0xFFFFFFFF) ^ (1 << 31)) - (1 << 31)
                topic = self.topics.names[code >> 32]
                self._by_code[code] = self.number_of(topic, queue_id)
        known = np.array([self._by_code[code] for code in distinct.tolist()], np.int64)
        found: Longs = known[np.searchsorted(distinct, codes)]
        return found

    def possible(self) -> NDArray[np.bool_]:
        """Whether there can be such a queue, for each number."""
        return np.array(self._possible, np.bool_)
