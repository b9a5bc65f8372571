"""The pure form of storage/native/reading/columns.c: the columns of records, with NumPy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.format.hash_many import powers_of_31
from storage.format.head_matrix import HEAD_TYPES
from storage.format.layout import HEAD_SIZES, MESSAGE_MAGIC_V1
from storage.format.message import (
    KEY_SEPARATOR,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)

from .byte_windows import Longs, group_rows, windows
from .property_columns import Properties, Values, properties_of
from .queue_numbers import TopicNames
from .record_batch import COLUMNS, MARK_DELAY, MARK_LIGHT, MARK_ODD, hash_of_text

_HEAD_SIZES: Final = np.array(HEAD_SIZES, np.int64)


def fill(
    view: memoryview, place: Longs, size: Longs, topics: TopicNames, matrix: Longs
) -> tuple[Longs, Longs]:
    """Fill the rows of ``matrix``, which are COLUMNS; gives rows and hashes of the keys."""
    out = dict(zip(COLUMNS, matrix, strict=True))
    out["place"][:], out["size"][:] = place, size
    if not len(place):
        return place, place
    heads = _heads_at(view, place, 0)
    for name in ("queue_id", "queue_offset", "physical_offset", "sys_flag", "store_timestamp"):
        out[name][:] = heads[name]
    body_length = heads["body_length"].astype(np.int64)
    hosts = out["sys_flag"] >> 4 & 3
    head_size: Longs | int = HEAD_SIZES[0]
    if hosts.any():
        head_size = _HEAD_SIZES[hosts]
        for kind in (1, 2, 3):
            rows = np.flatnonzero(hosts == kind)
            if len(rows):
                wide = _heads_at(view, place[rows], kind)
                out["store_timestamp"][rows] = wide["store_timestamp"]
                body_length[rows] = wide["body_length"]
    topic_at, topic_length = _topics_at(
        view, place + head_size + np.maximum(body_length, 0), heads["magic"] != MESSAGE_MAGIC_V1
    )
    width = -(-max(8, int(topic_length.max())) // 8) * 8
    names = windows(view, topic_at, topic_length, width)
    representative, group = group_rows(names, topic_length)
    known = [
        topics.number_and_hash(names[row, : int(topic_length[row])].tobytes())
        for row in representative.tolist()
    ]
    out["topic"][:] = np.array([number for number, _ in known], np.int64)[group]
    topic_hash = np.array([its_hash for _, its_hash in known], np.uint32)[group]
    out["properties_at"][:] = topic_at + topic_length + 2
    out["properties_length"][:] = place + size - out["properties_at"]
    return _read_properties(view, out, topic_hash)


def _topics_at(
    view: memoryview, at: Longs, has_long_name: NDArray[np.bool_]
) -> tuple[Longs, Longs]:
    """Where the names of topics begin and how long they are, from where their lengths lie."""
    octets = np.frombuffer(view, np.uint8)
    length = octets[at].astype(np.int64)
    at = at + 1
    rows = np.flatnonzero(has_long_name)  # version 2: the length is a short
    length[rows] = length[rows] << 8 | octets[at[rows]]
    at[rows] += 1
    return at, length


def _read_properties(
    view: memoryview, out: dict[str, Longs], topic_hash: NDArray[np.uint32]
) -> tuple[Longs, Longs]:
    out["tags_code"][:] = 0
    out["marks"][:] = 0
    rows: list[Longs] = []
    ranks: list[Longs] = []
    hashes: list[Longs] = []
    for part in properties_of(view, out["properties_at"], out["properties_length"]):
        tags = part.find(PROPERTY_TAGS)
        out["tags_code"][tags.rows] = tags.hashes()[0].view(np.int32)
        out["marks"][part.find(PROPERTY_DELAY_TIME_LEVEL).rows] |= MARK_DELAY
        out["marks"][part.find(PROPERTY_INNER_MULTI_DISPATCH).rows] |= MARK_LIGHT
        out["marks"][part.rows[part.odd()]] |= MARK_ODD
        for row, rank, hashed in _keys(part, topic_hash):
            rows.append(row)
            ranks.append(rank)
            hashes.append(hashed)
    row = np.concatenate(rows)
    order = np.lexsort((np.concatenate(ranks), row))
    return row[order], np.concatenate(hashes)[order]


def _keys(part: Properties, topic_hash: NDArray[np.uint32]) -> list[tuple[Longs, Longs, Longs]]:
    """Rows, ranks within the record and hashes: UNIQ_KEY first, then each part of KEYS."""
    unique = part.find(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    keys = part.find(PROPERTY_KEYS)
    several = keys.hold(ord(KEY_SEPARATOR))
    found = []
    for rank, values in enumerate((unique, keys.only(~several))):
        whole, units = values.hashes()
        whole = topic_hash[values.rows] * powers_of_31(units) + whole
        found.append((values.rows, np.full(len(values.rows), rank, np.int64), _absolute(whole)))
    if several.any():
        found.append(_divided(keys.only(several), topic_hash))
    return found


def _divided(values: Values, topic_hash: NDArray[np.uint32]) -> tuple[Longs, Longs, Longs]:
    """Keys that stand together in one KEYS property."""
    rows: list[int] = []
    ranks: list[int] = []
    hashes: list[int] = []
    for row, text in zip(values.rows.tolist(), values.texts(), strict=True):
        begun = int(topic_hash[row])
        for rank, key in enumerate(filter(None, text.split(KEY_SEPARATOR.encode())), 1):
            hashed, units = hash_of_text(key)
            rows.append(row)
            ranks.append(rank)
            hashes.append(begun * pow(31, units, 1 << 32) + hashed & 0xFFFFFFFF)
    whole = _absolute(np.array(hashes, np.uint32))
    return np.array(rows, np.int64), np.array(ranks, np.int64), whole


def _absolute(hashes: NDArray[np.uint32]) -> Longs:
    """Java's Math.abs of unsigned hashes, but 0 for -2^31 (IndexFile.indexKeyHashMethod)."""
    signed = hashes.view(np.int32).astype(np.int64)
    absolute: Longs = np.abs(signed) & 0x7FFFFFFF
    return absolute


def _heads_at(view: memoryview, places: Longs, hosts: int) -> NDArray[Any]:
    """The fixed fields at many places; ``hosts`` chooses the form."""
    head = HEAD_TYPES[hosts]
    # An item at every byte; without fields, so that each is copied as a whole.
    count = max(1, len(view) - head.itemsize + 1)
    every: NDArray[Any] = np.ndarray((count,), f"V{head.itemsize}", view, strides=(1,))
    return every[np.minimum(places, count - 1)].view(head)
