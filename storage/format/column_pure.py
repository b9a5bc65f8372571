"""The form of ``prepare_column`` that needs no compiler: columns in NumPy, bodies only joined.

It stays until binary wheels are published: in plain Python a line takes some 15 times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .encode import cached_tags_code, properties_length, topic_field
from .encode_column import ColumnParts
from .head_matrix import HEAD_TYPES, checksums_of, lengths_of, rows_of
from .java_hash import key_hash, unsigned_java_hash
from .layout import HEAD_SIZES, MAX_PROPERTIES_LENGTH, MESSAGE_MAGIC_V1
from .message import KEY_SEPARATOR, split_keys
from .prepared import PreparedRecords
from .prepared_many import Longs, PreparedColumns
from .sys_flag import MessageSysFlag, gets_unit, is_indexed

_V6_BITS: Final = MessageSysFlag.BORNHOST_V6_FLAG | MessageSysFlag.STOREHOSTADDRESS_V6_FLAG
_UNIQ_KEY: Final = b"UNIQ_KEY\x01"
_KEYS_TEXT: Final = "KEYS\x01"
_KEYS: Final = _KEYS_TEXT.encode()
_MAX_ROW: Final = 256
"""Characters of the longest key that is hashed by multiplying with powers of 31."""
_POWERS: Final = np.array([pow(31, n, 1 << 32) for n in range(_MAX_ROW + 1)], np.uint32)


def prepare_column_pure(column: ColumnParts) -> PreparedRecords:
    """See ``encode_column.prepare_column``; there is at least one body."""
    (
        topic,
        queue_ids,
        bodies,
        born_timestamp,
        born_host,
        store_host,
        properties,
        tags,
        unique_ids,
        keys,
        flag,
        sys_flag,
        delay_ms,
    ) = column
    count = len(bodies)
    field = topic_field(topic)
    unique_rows = None if unique_ids is None else _rows(unique_ids, count)
    key_rows = None if keys is None else _equal_keys(keys)
    pieces = [properties] if properties else []
    varying: list[tuple[int, NDArray[np.uint8]]] = []  # offset in the properties, and bytes
    for name, rows in ((_UNIQ_KEY, unique_rows), (_KEYS, key_rows)):
        if rows is not None:
            varying.append((sum(map(len, pieces)) + len(pieces) + len(name), rows))
            pieces.append(name + bytes(rows.shape[1]))
    fixed = b"\x02".join(pieces)
    key_parts = None
    if keys is not None and key_rows is None:
        key_parts, fixed = _key_parts(keys, fixed)
    body_sizes = lengths_of(bodies)
    property_sizes: Longs | int = len(fixed)
    longest = len(fixed)
    if key_parts is not None:
        property_sizes = lengths_of(key_parts) + len(fixed)
        longest = int(property_sizes.max())
    if longest > MAX_PROPERTIES_LENGTH:
        properties_length(bytes(longest))  # raises
    hosts = (len(born_host) == 20) | (len(store_host) == 20) << 1
    sizes = body_sizes + property_sizes + (HEAD_SIZES[hosts] + len(field) + 2)

    # A row is what lies between two bodies: the tail of a record and the head of the next.
    head_type = HEAD_TYPES[hosts]
    template = field + longest.to_bytes(2, "big") + fixed  # the length that most rows have
    begin = len(template)
    width = begin + head_type.itemsize
    between = np.frombuffer(
        bytearray((template + bytes(head_type.itemsize)) * (count + 1)), np.uint8
    ).reshape(count + 1, width)

    heads = np.ndarray((count,), head_type, between, begin, (width,))
    heads["total_size"] = sizes
    heads["magic"] = MESSAGE_MAGIC_V1
    heads["body_crc"] = checksums_of(bodies)
    queues: list[tuple[str, int]]
    queue_index: Longs | None
    if isinstance(queue_ids, int):
        queues, queue_index = [(topic, queue_ids)], None
        heads["queue_id"] = queue_ids
    else:
        numbers = _whole_numbers(queue_ids, count)
        queues, queue_index = _queues(topic, queue_ids, numbers)
        heads["queue_id"] = numbers
    heads["flag"] = flag
    heads["sys_flag"] = sys_flag & ~_V6_BITS | hosts << 4
    heads["born_timestamp"] = born_timestamp
    heads["born_host"] = np.frombuffer(born_host, f"V{len(born_host)}")
    heads["store_host"] = np.frombuffer(store_host, f"V{len(store_host)}")
    heads["body_length"] = body_sizes

    tails = between[1:, :begin]
    if not isinstance(property_sizes, int):
        tails[:, len(field) : len(field) + 2] = (
            property_sizes.astype(">u2").view(np.uint8).reshape(count, 2)
        )
    for start, rows in varying:
        start += len(field) + 2
        tails[:, start : start + rows.shape[1]] = rows
    buffer = _image(between, begin, bodies, key_parts)

    hashes, key_counts = _no_keys()
    if is_indexed(sys_flag):
        hashes, key_counts = _key_hashes(topic, unique_rows, key_rows, keys)
    return PreparedColumns(
        buffer,
        np.cumsum(sizes) - sizes,
        sizes,
        queues,
        queue_index,
        None if gets_unit(sys_flag) else np.zeros(count, np.bool_),
        np.full(count, cached_tags_code(tags), np.int64),
        None if delay_ms < 0 else np.full(count, delay_ms, np.int64),
        hashes,
        key_counts,
    )


def _image(
    between: NDArray[np.uint8],
    begin: int,
    bodies: Sequence[bytes],
    key_parts: Sequence[bytes] | None,
) -> bytearray:
    """Join bodies, and separate keys, with the rows of ``between``; a head starts at ``begin``."""
    count = len(bodies)
    if key_parts is None:
        parts: list[bytes] = [b""] * (2 * count + 1)
        parts[0::2] = rows_of(between)
        parts[1::2] = bodies
        parts[0] = parts[0][begin:]
        parts[-1] = parts[-1][:begin]
        return bytearray().join(parts)
    parts = [b""] * (4 * count)
    parts[0::4] = rows_of(np.ascontiguousarray(between[:-1, begin:]))
    parts[1::4] = bodies
    parts[2::4] = rows_of(np.ascontiguousarray(between[1:, :begin]))
    parts[3::4] = key_parts
    return bytearray().join(parts)


def _rows(joined: bytes, count: int) -> NDArray[np.uint8]:
    return np.frombuffer(joined, np.uint8).reshape(count, len(joined) // count)


def _equal_keys(keys: Sequence[str]) -> NDArray[np.uint8] | None:
    """Give keys as the rows of a matrix if they are single, ASCII, and all of one length."""
    width = len(keys[0])
    joined = "".join(keys)
    if (
        not 0 < width <= _MAX_ROW
        or len(joined) != width * len(keys)
        or not joined.isascii()
        or KEY_SEPARATOR in joined
        or len(set(map(len, keys))) > 1
    ):
        return None
    return _rows(joined.encode(), len(keys))


def _key_parts(keys: Sequence[str], fixed: bytes) -> tuple[list[bytes], bytes]:
    """Encode KEYS items; gives them and what precedes each of them.

    If every message has a key, the separator before the item is part of what precedes it; else
    it is part of the item.
    """
    before = fixed + b"\x02" if fixed else b""
    if "" not in keys:
        parts = (_KEYS_TEXT + f"\x02{_KEYS_TEXT}".join(keys)).encode().split(b"\x02")
        if len(parts) == len(keys):
            return parts, before
    name = before[-1:] + _KEYS
    return [name + key.encode() if key else b"" for key in keys], fixed


def _whole_numbers(values: Sequence[int], count: int) -> Longs:
    column = np.fromiter(values, np.int64, count)
    if len(values) != count:
        raise ValueError(f"{count} bodies have {len(values)} queue ids")
    return column


def _queues(
    topic: str, queue_ids: Sequence[int], column: Longs
) -> tuple[list[tuple[str, int]], Longs | None]:
    """Give the distinct queues in the order of their first messages, and each message's number.

    ``column`` is ``queue_ids`` as an array.
    """
    distinct = [int(queue_id) for queue_id in dict.fromkeys(queue_ids)]
    queues = [(topic, queue_id) for queue_id in distinct]
    if len(queues) == 1:
        return queues, None
    if min(distinct) >= 0 and max(distinct) < 1 << 16:
        numbers = np.empty(max(distinct) + 1, np.int64)
        numbers[distinct] = np.arange(len(distinct))
        return queues, numbers[column]
    number_of = {queue_id: number for number, queue_id in enumerate(distinct)}
    return queues, np.fromiter(map(number_of.__getitem__, column.tolist()), np.int64, len(column))


def _no_keys() -> tuple[Longs, Longs | int]:
    return np.zeros(0, np.int64), 0


def _key_hashes(
    topic: str,
    unique_rows: NDArray[np.uint8] | None,
    key_rows: NDArray[np.uint8] | None,
    keys: Sequence[str] | None,
) -> tuple[Longs, Longs | int]:
    """Hash the index keys, record by record: the UNIQ_KEY, then the keys."""
    columns = [
        index_hashes_of_rows(topic, rows) for rows in (unique_rows, key_rows) if rows is not None
    ]
    if keys is not None and key_rows is None:
        if "" in keys or KEY_SEPARATOR in "".join(keys):
            return _uneven_key_hashes(topic, columns, keys)
        columns.append(_index_hashes(topic, keys))
    if not columns:
        return _no_keys()
    hashes = np.empty((len(columns[0]), len(columns)), np.int64)
    for number, column in enumerate(columns):
        hashes[:, number] = column
    return hashes.reshape(-1), len(columns)


def index_hashes_of_rows(topic: str, keys: NDArray[np.uint8]) -> Longs:
    """Hash keys that are the rows of a matrix: ASCII, 1 to 256 characters. See ``key_hash``."""
    width = keys.shape[1]
    hashes = keys.astype(np.uint32) @ _POWERS[:width][::-1]
    return _after_topic(topic, hashes, _POWERS[width : width + 1])


def _index_hashes(topic: str, keys: Sequence[str]) -> Longs:
    """Hash keys that are not empty."""
    lengths = lengths_of(keys)
    joined = "".join(keys)
    if not (joined and joined.isascii()) or int(lengths.max()) > _MAX_ROW:
        return np.array([key_hash(topic, key) for key in keys], np.int64)
    ends = np.cumsum(lengths)
    exponents = np.repeat(ends - 1, lengths) - np.arange(len(joined))
    terms = np.frombuffer(joined.encode(), np.uint8) * _POWERS[exponents]
    hashes = np.add.reduceat(terms, ends - lengths, dtype=np.uint32)
    return _after_topic(topic, hashes, _POWERS[lengths])


def _after_topic(topic: str, hashes: NDArray[np.uint32], powers: NDArray[np.uint32]) -> Longs:
    """Make index hashes of hashes of keys, and 31 to the power of their lengths."""
    whole = hashes + np.uint32(unsigned_java_hash(topic + "#")) * powers
    absolute: Longs = np.abs(whole.view(np.int32).astype(np.int64)) & 0x7FFFFFFF  # -2^31 gives 0
    return absolute


def _uneven_key_hashes(topic: str, unique: list[Longs], keys: Sequence[str]) -> tuple[Longs, Longs]:
    divided = [split_keys(key) for key in keys]
    of_keys = lengths_of(divided)
    counts = of_keys + len(unique)
    hashes = np.empty(int(counts.sum()), np.int64)
    is_key = np.ones(len(hashes), np.bool_)
    if unique:
        firsts = np.cumsum(counts) - counts
        hashes[firsts] = unique[0]
        is_key[firsts] = False
    hashes[is_key] = _index_hashes(topic, [key for part in divided for key in part])
    return hashes, counts
