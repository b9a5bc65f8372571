"""The file ``checkpoint`` (org.apache.rocketmq.store.StoreCheckpoint), 4096 bytes.

0              8               16             24                   32             40    4096
+--------------+---------------+--------------+--------------------+--------------+------+
| physicMsgTs  | logicsMsgTs   | indexMsgTs   | masterFlushed (5.x)| confirm (5.x)| zeros|
+--------------+---------------+--------------+--------------------+--------------+------+
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, Self

CHECKPOINT_SIZE: Final = 4096
CLOCK_MARGIN_MS: Final = 3000
"""Recovery starts this much before what the checkpoint vouches for."""

_FIELDS: Final = Struct(">5q")


class CheckpointData(NamedTuple):
    """Store times (ms) up to which log, queues and full index files are on the device.

    0 means nothing is known, as does a missing or empty file. The last two are offsets that only
    5.x writes; 4.9 leaves zeros.
    """

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Decode a file's bytes; what a short file lacks counts as 0, as Java maps it."""
        return cls._make(_FIELDS.unpack(data[: _FIELDS.size].ljust(_FIELDS.size, b"\0")))

    def pack(self) -> bytes:
        """Encode the whole file of 4096 bytes."""
        return _FIELDS.pack(*self).ljust(CHECKPOINT_SIZE, b"\0")

    @property
    def min_timestamp(self) -> int:
        """Store time (ms) up to which log and queues are surely whole; never negative."""
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - CLOCK_MARGIN_MS)

    @property
    def min_timestamp_index(self) -> int:
        """The same with the index, for a store that opens with ``messageIndexSafe``."""
        return min(self.min_timestamp, self.index_msg_timestamp)
