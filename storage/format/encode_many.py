"""Encoding many messages at once: columns in NumPy, bodies only ever joined.

Same records as ``encode.prepare``. Heads are rows of one matrix; bodies, topics and properties
stay bytes objects, and ``b"".join`` is the only thing that copies them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .encode import (
    MessageInner,
    cached_tags_code,
    prepare_pure,
    properties_length,
    topic_field,
    topic_hash,
)
from .encode_column import prepare_column as prepare_column
from .hash_many import index_hashes_many
from .head_matrix import HEAD_TYPES, checksums_of, column_of, host_column, lengths_of, rows_of
from .layout import HEAD_SIZES, MAX_PROPERTIES_LENGTH, MESSAGE_MAGIC_V1
from .prepared import PreparedRecords
from .prepared_many import Longs, PreparedColumns
from .prepared_table import table_of_run
from .sys_flag import MessageSysFlag, is_indexed

_PREPARED: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE
_ROLLBACK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
_V6_BITS: Final = 0x30


def _numbered(values: Sequence[Any]) -> tuple[list[Any], Longs | None]:
    """List the distinct values in order of appearance, and number them; None for a single one."""
    distinct = dict.fromkeys(values)
    if len(distinct) == 1:
        return list(distinct), None
    numbers: dict[Any, int] = {value: number for number, value in enumerate(distinct)}
    of: Callable[[Any], int] = numbers.__getitem__
    return list(distinct), np.fromiter(map(of, values), np.int64, len(values))


def encode_many(messages: Sequence[MessageInner]) -> PreparedRecords:
    """Encode any mix of messages; the same result as ``prepare``, from about 48 on faster.

    Raises InvalidMessageError for a topic or properties that their length fields can not hold.
    """
    return table_of_run(messages) or encode_many_pure(messages)


def encode_many_pure(messages: Sequence[MessageInner]) -> PreparedRecords:
    """The pure form of :func:`encode_many`."""
    if not messages:
        return prepare_pure(messages)
    (
        topics, queue_ids, bodies, properties, born_timestamps, born_hosts, store_hosts, flags,
        sys_flags, reconsume_times, prepared_offsets, tags, keys, delay_levels, delays,
    ) = zip(*messages, strict=True)  # fmt: skip
    host_sizes = set(map(len, born_hosts)), set(map(len, store_hosts))
    if len(host_sizes[0]) > 1 or len(host_sizes[1]) > 1:
        return prepare_pure(messages)  # heads of several widths are no matrix; a rare mix
    hosts = (host_sizes[0] == {20}) | (host_sizes[1] == {20}) << 1
    count = len(messages)
    topic_fields = list(map(topic_field, topics))
    property_sizes = lengths_of(properties)
    if int(property_sizes.max()) > MAX_PROPERTIES_LENGTH:
        properties_length(max(properties, key=len))  # raises
    body_sizes = lengths_of(bodies)
    sizes = body_sizes + property_sizes + lengths_of(topic_fields) + (HEAD_SIZES[hosts] + 2)
    sys_flag = column_of(sys_flags)
    heads = np.zeros(count, HEAD_TYPES[hosts])
    heads["total_size"] = sizes
    heads["magic"] = MESSAGE_MAGIC_V1
    heads["body_crc"] = checksums_of(bodies)
    heads["queue_id"] = column_of(queue_ids)
    heads["flag"] = column_of(flags)
    heads["sys_flag"] = sys_flag & ~_V6_BITS | hosts << 4
    heads["born_timestamp"] = column_of(born_timestamps)
    heads["born_host"] = host_column(born_hosts)
    heads["store_host"] = host_column(store_hosts)
    heads["reconsume_times"] = column_of(reconsume_times)
    heads["prepared_transaction_offset"] = column_of(prepared_offsets)
    heads["body_length"] = body_sizes
    parts: list[bytes] = [b""] * (5 * count)
    parts[0::5] = rows_of(heads)
    parts[1::5] = bodies
    parts[2::5] = topic_fields
    parts[3::5] = rows_of(property_sizes.astype(">u2"))
    parts[4::5] = properties
    if topics.count(topics[0]) == count:
        distinct, queue_index = _numbered(queue_ids)
        queues = [(topics[0], queue_id) for queue_id in distinct]
    else:
        queues, queue_index = _numbered(tuple(zip(topics, queue_ids, strict=True)))
    flags_of = np.broadcast_to(np.asarray(sys_flag), count)
    has_unit = flags_of & _PREPARED == 0
    if (flags_of & _ROLLBACK == _ROLLBACK).any():
        keys = tuple(k if is_indexed(f) else () for k, f in zip(keys, sys_flags, strict=True))
    key_counts = np.fromiter(map(len, keys), np.int64, count)
    delayed = np.fromiter(delay_levels, np.int64, count) > 0
    return PreparedColumns(
        bytearray().join(parts),
        np.cumsum(sizes) - sizes,
        sizes,
        queues,
        queue_index,
        None if has_unit.all() else has_unit,
        np.fromiter(map(cached_tags_code, tags), np.int64, count),
        np.where(delayed, delays, -1) if delayed.any() else None,
        _key_hashes(topics, keys, key_counts),
        key_counts,
    )


def _key_hashes(topics: Sequence[str], keys: Sequence[tuple[str, ...]], key_counts: Longs) -> Longs:
    begun: int | NDArray[np.uint32]
    width = int(key_counts[0])
    same = topics.count(topics[0]) == len(topics)
    if same:
        begun = topic_hash(topics[0])
    else:
        begun = np.fromiter(map(topic_hash, topics), np.uint32, len(topics))
    flat = list(chain.from_iterable(keys))
    if (key_counts != width).any():
        return index_hashes_many(begun if same else np.repeat(begun, key_counts), flat)
    # UNIQ_KEYs are equally long, which is much the faster case: hash key by key of a message.
    hashes = np.empty((len(keys), width), np.int64)
    for place in range(width):
        hashes[:, place] = index_hashes_many(begun, flat[place::width])
    return hashes.reshape(-1)
