"""Records that replace damaged ones (FORMAT.md, "Replaced records").

``store repair`` writes a record of the same length, with the same topic, queue and queue offset, a
body of zeros and the right CRC. So the log goes on for every reader, a Java broker, too. A bit of
sysFlag that RocketMQ does not use marks it, so a copy of the bytes keeps the mark. rmqctl gives no
such record to its callers; a Java broker delivers the zeros.

Bytes that no unit names become records without a queue, of transaction type rollback, which are
not dispatched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from .layout import HEAD_SIZES, MIN_RECORD_SIZE
from .record import encode_record
from .sys_flag import REPLACED_FLAG as REPLACED_FLAG, MessageSysFlag

FILLER_TOPIC: Final = "RMQCTL_REPLACED"
"""Topic of records that fill bytes of unknown content."""
LEAST_FILLER: Final = MIN_RECORD_SIZE + 1
_MOST_FILLER: Final = 4 << 20
_NO_HOST: Final = bytes(8)


class Tombstone(NamedTuple):
    """What the new record is to say; ``size`` and ``commitlog_offset`` are those of the old one."""

    topic: str
    queue_id: int
    queue_offset: int
    commitlog_offset: int
    size: int
    store_timestamp: int
    properties: bytes = b""
    sys_flag: int = 0
    born_timestamp: int = 0
    prepared_transaction_offset: int = 0

    def fits(self) -> bool:
        """Whether a record with this topic has so few bytes."""
        return len(self.topic.encode()) + MIN_RECORD_SIZE <= self.size

    def keeps_properties(self) -> bool:
        """Whether its properties fit, too."""
        return len(self.topic.encode()) + MIN_RECORD_SIZE + 1 + len(self.properties) <= self.size

    def encode(self) -> bytes:
        """Make the record's bytes; properties that do not fit are left out.

        Raises ValueError if it does not fit.
        """
        topic = self.topic.encode()
        version = 1 if len(topic) < 128 else 2
        fixed = HEAD_SIZES[0] + 2 + version + len(topic)
        properties = self.properties
        if fixed + len(properties) > self.size:
            properties = b""
        if fixed > self.size:
            raise ValueError(f"a record of topic {self.topic} does not fit into {self.size} bytes")
        return encode_record(
            topic=self.topic,
            queue_id=self.queue_id,
            body=bytes(self.size - fixed - len(properties)),
            properties=properties,
            queue_offset=self.queue_offset,
            physical_offset=self.commitlog_offset,
            store_timestamp=self.store_timestamp,
            born_timestamp=self.born_timestamp or self.store_timestamp,
            born_host=_NO_HOST,
            store_host=_NO_HOST,
            sys_flag=self.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE | REPLACED_FLAG,
            prepared_transaction_offset=self.prepared_transaction_offset,
            version=version,
        )


def is_replaced(sys_flag: int, body: bytes | memoryview) -> bool:
    """Whether a record replaces a damaged one; ``body`` as stored."""
    return bool(sys_flag & REPLACED_FLAG) and not any(body)


def fillers(start: int, end: int, store_timestamp: int) -> Iterator[Tombstone]:
    """Give records without a queue for [start, end) of the log, at least LEAST_FILLER bytes."""
    while start < end:
        size = min(end - start, _MOST_FILLER)
        if 0 < end - start - size < LEAST_FILLER + len(FILLER_TOPIC):
            size -= LEAST_FILLER + len(FILLER_TOPIC)
        name = FILLER_TOPIC[: size - MIN_RECORD_SIZE]
        rollback = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
        yield Tombstone(name, 0, 0, start, size, store_timestamp, sys_flag=rollback)
        start += size
