"""What the C files here offer."""

from collections.abc import Callable
from typing import Any

def crc32(data: bytes | memoryview, /) -> int:
    """The same as zlib.crc32."""

def crc32_ways(data: bytes | memoryview, /) -> list[int]:
    """The same by each way that this processor can go and that so many bytes can go."""

def scan_plain(
    buffer: memoryview, position: int, limit: int, most: int, check_crc: bool, /
) -> bytes:
    """Sizes (int64) of plain records one behind the other; see storage.format.check."""

def read_columns(
    buffer: memoryview,
    places: memoryview,
    sizes: memoryview,
    number_of: Callable[[bytes], tuple[int, int]],
    hash_of: Callable[[bytes], tuple[int, int]],
    columns: memoryview,
    /,
) -> tuple[bytes, bytes]:
    """Fill the matrix of a RecordBlock (storage.columns.block); rows and hashes of its keys."""

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

def bind_sent(message_class: type, inner_class: type, /) -> None:
    """Say what is sent, and what is made of it; before the following, see storage.format.plain."""

def look_at(message: Any, largest_body: int, /) -> int:
    """See storage.format.plain, and the others too."""

def look_over(messages: Any, topic: str, largest_body: int, /) -> tuple[int, int] | None: ...
def give_ids(messages: Any, ids: bytes, width: int, /) -> None: ...
def inner_message(
    topic: str,
    queue_id: int,
    after: bytes,
    largest_body: int,
    origin: tuple[Any, ...],
    message: Any,
    unique_id: str,
    /,
) -> tuple[Any, str] | None: ...
def inner_messages(
    topic: str,
    queue_id: int,
    after: bytes,
    largest_body: int,
    origin: tuple[Any, ...],
    messages: Any,
    unique_ids: Any,
    /,
) -> tuple[list[Any], list[str], int] | None: ...
def offset_msg_ids(store_host: bytes, offsets: Any, /) -> str:
    """See storage.format.message_id.offset_msg_ids."""
