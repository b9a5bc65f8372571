"""The bits of a record's sysFlag (org.apache.rocketmq.common.sysflag.MessageSysFlag).

bit   0    1           2-3              4          5            6-7             8-10
    +----+-----------+----------------+----------+------------+---------------+------------------+
    | zip| multi-tag | transaction    | born v6  | store v6   | batch (5.x)   | compression type |
    +----+-----------+----------------+----------+------------+---------------+------------------+

Bit 30 is rmqctl's: a replaced record (storage.format.tombstone).
"""

from __future__ import annotations

from typing import Final

REPLACED_FLAG: Final = 1 << 30
"""rmqctl's mark of a record that replaces a damaged one; no RocketMQ release uses it."""


class MessageSysFlag:
    """Bits and fields of sysFlag as plain ints; not meant to be instantiated."""

    COMPRESSED_FLAG: Final = 0x1
    MULTI_TAGS_FLAG: Final = 0x2
    TRANSACTION_NOT_TYPE: Final = 0x0
    TRANSACTION_PREPARED_TYPE: Final = 0x4
    TRANSACTION_COMMIT_TYPE: Final = 0x8
    TRANSACTION_ROLLBACK_TYPE: Final = 0xC
    BORNHOST_V6_FLAG: Final = 0x10
    STOREHOSTADDRESS_V6_FLAG: Final = 0x20
    NEED_UNWRAP_FLAG: Final = 0x40
    INNER_BATCH_FLAG: Final = 0x80
    COMPRESSION_LZ4_TYPE: Final = 0x100
    COMPRESSION_ZSTD_TYPE: Final = 0x200
    COMPRESSION_ZLIB_TYPE: Final = 0x300
    COMPRESSION_TYPE_MASK: Final = 0x700


def transaction_type(sys_flag: int) -> int:
    """Give the transaction bits: none (0), prepared (4), commit (8) or rollback (12)."""
    return sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def gets_unit(sys_flag: int) -> bool:
    """Whether a record gets a consume queue unit and a queue offset.

    Prepared and rollback records do not (CommitLog.DefaultAppendMessageCallback,
    CommitLogDispatcherBuildConsumeQueue): bit 2 is set in exactly those two types.
    """
    return not sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE


def is_indexed(sys_flag: int) -> bool:
    """Whether the keys of a record enter the index: all but rollback records."""
    return transaction_type(sys_flag) != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
