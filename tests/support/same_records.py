"""Records that are to be stored, compared with those that RocketMQ stored in the same case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from storage.append.lmq import LmqPut
from storage.format.message import MessageExt
from storage.format.prepared import PreparedRecords
from storage.format.record import decode_record
from storage.readonly import StoreView
from storage.results import PutMessageResult, PutMessageStatus

T = TypeVar("T")


class Taken:
    """A put that stores nothing: it keeps the records, as they would be at the log's start."""

    def __init__(self) -> None:
        self.records: list[MessageExt] = []
        self.units: list[tuple[int, int, int]] = []

    def __call__(
        self, records: PreparedRecords | LmqPut, *, whole: bool = False
    ) -> PutMessageResult:
        assert isinstance(records, PreparedRecords)
        records.place(0, [0] * len(records.queues), 0)
        for start, size in zip(records.starts, records.sizes, strict=True):
            self.records.append(decode_record(bytes(records.buffer[start : start + size])))
        return PutMessageResult(PutMessageStatus.PUT_OK, list(records.starts), [0] * len(records))


def content(message: MessageExt) -> dict[str, Any]:
    """Give everything of a record that its writer decides; the order of properties is Java's."""
    return {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "flag": message.flag,
        "sys_flag": message.sys_flag,
        "born_timestamp": message.born_timestamp,
        "born_host": message.born_host,
        "store_host": message.store_host,
        "reconsume_times": message.reconsume_times,
        "prepared_transaction_offset": message.prepared_transaction_offset,
        "stored_body": message.stored_body,
        "body_crc": message.body_crc,
        "properties": dict(sorted(message.properties.items())),
        "store_size": message.store_size,
    }


def all_messages(view: StoreView, topics: Iterable[str] | None = None) -> list[MessageExt]:
    """Read the messages of a store in the order of the log."""
    wanted = None if topics is None else set(topics)
    found: list[MessageExt] = []
    for topic, queue_id in view.queues():
        if wanted is not None and topic not in wanted:
            continue
        bounds = view.queue_bounds(topic, queue_id)
        for offset in range(bounds.min_offset, bounds.max_offset):
            found += view.get_message(topic, queue_id, offset, 1).messages[:1]
    return sorted(found, key=lambda message: message.commitlog_offset)


def only(found: Sequence[T]) -> T:
    """Give the one thing there is."""
    [thing] = found
    return thing
