"""What the C files here offer."""

from typing import Any

def crc32(data: bytes | memoryview, /) -> int:
    """The same as zlib.crc32."""

def crc32_ways(data: bytes | memoryview, /) -> list[int]:
    """The same by each way that this processor can go and that so many bytes can go."""

def bind(message_class: type, /) -> None:
    """Say what messages are made of; once, before ``read_run`` and ``read_at``."""

def read_run(
    units: bytes | memoryview,
    log: memoryview,
    first: int,
    topic: str,
    field: bytes,
    queue_id: int,
    queue_offset: int,
    count: int,
    byte_limit: int,
    unusual: int,
    /,
) -> tuple[list[Any], int]:
    """See RecordReader.read_run; ``log`` is a file of it that begins at ``first``."""

def read_at(log: memoryview, position: int, limit: int, offset: int, unusual: int, /) -> Any:
    """See RecordReader.look; None for what the pure form is to look at."""

def parse_properties(data: bytes, /) -> dict[str, str]:
    """See storage.format.properties.parse_properties."""
