"""Where the fields of a commit log record lie; ``record`` draws the picture.

The fixed part before the body has four forms, by the two IPv6 bits of sysFlag. sysFlag and all
fields before it have the same position in each of them.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

Buffer: TypeAlias = "bytes | bytearray | memoryview"

MESSAGE_MAGIC_V1: Final = 0xDAA320A7 - (1 << 32)
MESSAGE_MAGIC_V2: Final = 0xDAA320AB - (1 << 32)
BLANK_MAGIC: Final = 0xCBD43194 - (1 << 32)
BLANK_SIZE: Final = 8
"""Bytes of a blank record's head, and what a file must have left after its last record."""

QUEUE_OFFSET_POSITION: Final = 20
PHYSICAL_OFFSET_POSITION: Final = 28
SYS_FLAG_POSITION: Final = 36
MIN_RECORD_SIZE: Final = 91
"""IPv4 hosts, no body, topic or properties."""
MAX_TOPIC_LENGTH_V1: Final = 127
MAX_TOPIC_LENGTH_V2: Final = 32767
MAX_PROPERTIES_LENGTH: Final = 32767

HEADS: Final = tuple(Struct(f">5i2qiq{born}sq{store}siqi") for store in (8, 20) for born in (8, 20))
"""The fixed part, by ``sys_flag >> 4 & 3``: bit 0 IPv6 born host, bit 1 IPv6 store host."""
HEAD_SIZES: Final = tuple(head.size for head in HEADS)

TWO_INTS: Final = Struct(">2i")


def store_timestamp_position(sys_flag: int) -> int:
    """Give where the store timestamp lies in a record: 56, or 68 after an IPv6 born host."""
    return 68 if sys_flag & 0x10 else 56
