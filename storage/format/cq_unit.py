"""One unit of a consume queue (org.apache.rocketmq.store.ConsumeQueue).

    0                 8         12                20
    +-----------------+---------+-----------------+
    | commitlogOffset | size    | tagsCode        |
    +-----------------+---------+-----------------+

Unit i of a queue lies at byte 20 * i. A queue whose first message has a queue offset above 0
starts with filler units (offset 0, size 2^31 - 1), which readers skip.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, Self

CQ_STORE_UNIT: Final = Struct(">qiq")
CQ_STORE_UNIT_SIZE: Final = CQ_STORE_UNIT.size
PRE_BLANK_SIZE: Final = 0x7FFFFFFF
PRE_BLANK: Final = CQ_STORE_UNIT.pack(0, PRE_BLANK_SIZE, 0)
"""Filler unit before a queue's first message (ConsumeQueue.fillPreBlank)."""
MAX_QUEUE_OFFSET: Final = 1 << 56
"""No queue has so many messages: larger queue offsets are damage."""
MOST_LOST: Final = 1_000_000
"""Messages in a row that a queue can lack: a larger gap is no gap but a damaged record."""
MAX_EXT_ADDR: Final = -(1 << 31) - 1
"""Tags codes up to this one are addresses into ConsumeQueueExt (ConsumeQueueExt.MAX_ADDR)."""


class StoreUnit(NamedTuple):
    """Where a message lies, how long its record is, and the hash of its tag."""

    commitlog_offset: int
    size: int
    tags_code: int

    @classmethod
    def unpack_from(cls, buffer: bytes | memoryview, position: int = 0) -> Self:
        """Decode the unit that starts at ``position``; struct.error beyond the buffer's end."""
        return cls._make(CQ_STORE_UNIT.unpack_from(buffer, position))

    def pack(self) -> bytes:
        """Encode the 20 bytes."""
        return CQ_STORE_UNIT.pack(*self)

    @property
    def is_present(self) -> bool:
        """Whether Java takes this for a unit; the first other one ends the queue on recovery."""
        return self.commitlog_offset >= 0 and self.size > 0

    @property
    def is_pre_blank(self) -> bool:
        """Whether this is a filler before the queue's first message."""
        return self.commitlog_offset == 0 and self.size == PRE_BLANK_SIZE


def iter_units(buffer: bytes | memoryview) -> Iterator[StoreUnit]:
    """Decode all whole units of a buffer, fillers and empty ones too."""
    whole = len(buffer) - len(buffer) % CQ_STORE_UNIT_SIZE
    return map(StoreUnit._make, CQ_STORE_UNIT.iter_unpack(memoryview(buffer)[:whole]))


def is_ext_addr(tags_code: int) -> bool:
    """Whether a tags code is an address into ConsumeQueueExt; no tag hash can be one."""
    return tags_code <= MAX_EXT_ADDR
