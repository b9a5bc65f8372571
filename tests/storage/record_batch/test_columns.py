"""Columns of many records hold what single records hold."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from storage.files.read_files import ReadMap
from storage.format.delay import parse_delay_levels
from storage.format.dispatch import read_request
from storage.format.message import SCHEDULE_TOPIC
from storage.format.record import encode_record
from storage.record_batch.queue_numbers import QueueNames, TopicNames
from storage.record_batch.record_batch import COLUMNS, read_block
from storage.tools.rebuild.keys import keys_of
from storage.tools.rebuild.units import DelayTimes, units_of
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.examples import examples

LEVELS = parse_delay_levels()
FIRST = 1 << 20

values = st.one_of(
    st.sampled_from(
        ["", "a", "TagA", "k1 k2", " k ", "polygenelubricants", "\u6807\u7b7e", "x" * 70]
    ),
    st.text(
        st.characters(blacklist_characters="\x01\x02", blacklist_categories=["Cs"]), max_size=9
    ),
)
names = st.sampled_from(
    ["TAGS", "KEYS", "UNIQ_KEY", "DELAY", "TAGSX", "XTAGS", "KEY", "INNER_MULTI_DISPATCH"]
    + ["INNER_MULTI_QUEUE_OFFSET"]
)
properties = st.one_of(
    st.lists(st.tuples(names, values), max_size=6).map(
        lambda items: "\x02".join(f"{name}\x01{value}" for name, value in items).encode()
    ),
    st.lists(
        st.sampled_from([b"TAGS", b"KEYS", b"\x01", b"\x02", b"DELAY", b"3", b"a", b"\xff"]),
        max_size=12,
    ).map(b"".join),
    st.just(b"TAGS\x01t\x02x\x01" + b"y" * 5000),
    st.just(b"INNER_MULTI_DISPATCH\x01%LMQ%a,b\x02INNER_MULTI_QUEUE_OFFSET\x017,9\x02TAGS\x01t"),
)
records: st.SearchStrategy[dict[str, object]] = st.builds(
    dict,
    topic=st.sampled_from(
        ["A", "Topic-B", "T" * 127, "\u4e3b\u9898", SCHEDULE_TOPIC, "a/b", "A\0"]
    ),
    queue_id=st.integers(-1, 3),
    body=st.sampled_from([b"", b"body", b"\x02TAGS\x01no\x02"]),
    properties=properties,
    queue_offset=st.integers(0, 1 << 50),
    physical_offset=st.just(0),
    store_timestamp=st.integers(1, 1 << 42),
    born_timestamp=st.just(1),
    born_host=st.sampled_from([bytes(8), bytes(20)]),
    store_host=st.sampled_from([bytes(8), bytes(20)]),
    sys_flag=st.sampled_from([0, 0, 0, 1, 4, 8, 12]),
    version=st.sampled_from([1, 1, 2]),
)


@contextmanager
def by(form: Any) -> Iterator[None]:
    """Read columns by a compiled module, or by the reference."""
    before, native.compiled = native.compiled, form
    try:
        yield
    finally:
        native.compiled = before


def log_of(made: list[dict[str, object]]) -> tuple[bytes, list[int]]:
    log, sizes = b"", []
    for fields in made:
        fields["physical_offset"] = FIRST + len(log)
        record = encode_record(**fields)  # type: ignore[arg-type]
        log += record
        sizes.append(len(record))
    return log, sizes


@pytest.mark.slow
@pytest.mark.parametrize("form", [None, pytest.param(compiled, marks=needs_compiled)])
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(records, min_size=1, max_size=12))
def test_units_and_keys_are_those_of_single_records(
    form: Any, made: list[dict[str, object]]
) -> None:
    log, sizes = log_of(made)
    mapped = mmap.mmap(-1, len(log))
    mapped[:] = log
    file = ReadMap(mapped, 1)
    queues = QueueNames()
    with by(form):
        block = read_block(file.view, FIRST, 0, sizes, queues.topics)
    units = units_of(block, file, queues, DelayTimes(LEVELS, {}))
    keys = keys_of(block)
    expected_units, expected_keys, place = [], [], 0
    for size in sizes:
        one = read_request(log, place, size, LEVELS, first=0)
        where, time = FIRST + place, one.store_timestamp
        for topic, queue_id, offset in one.units:
            if queue_id >= 0 and offset < 1 << 56:
                expected_units.append((topic, queue_id, offset, where, size, one.tags_code, time))
        expected_keys += [(key_hash, where, time) for key_hash in one.key_hashes]
        place += size
    found = [
        (*queues.keys[row[0]], *row[1:])
        for row in zip(*(column.tolist() for column in units), strict=True)
    ]
    assert sorted(found) == sorted(expected_units)
    assert list(zip(*(column.tolist() for column in keys), strict=True)) == expected_keys


@pytest.mark.slow
@needs_compiled
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(records, min_size=1, max_size=12))
def test_the_compiled_form_gives_the_columns_of_the_reference(
    made: list[dict[str, object]],
) -> None:
    log, sizes = log_of(made)
    assert columns_by(compiled, log, sizes) == columns_by(None, log, sizes)


def columns_by(form: Any, log: bytes, sizes: list[int]) -> list[object]:
    with by(form):
        topics = TopicNames()
        block = read_block(memoryview(log), FIRST, 0, sizes, topics)
    numbers = [getattr(block, name).tolist() for name in COLUMNS if name != "topic"]
    names = [topics.names[number] for number in block.topic.tolist()]
    return [*numbers, names, block.key_row.tolist(), block.key_hash.tolist(), block.texts]


@needs_compiled
@given(
    st.lists(records, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), max_size=6),
)
@pytest.mark.slow
def test_bytes_that_change_while_they_are_read_do_no_harm(
    made: list[dict[str, object]], changes: list[tuple[int, int]]
) -> None:
    log, sizes = log_of(made)
    damaged = bytearray(log)
    for place, octet in changes:
        damaged[place % len(damaged)] = octet
    with by(compiled):
        block = read_block(memoryview(damaged), FIRST, 0, sizes, TopicNames())
    ends = block.properties_at + block.properties_length
    assert (ends <= block.place + block.size).all()


def test_some_records_of_a_block_keep_what_is_theirs() -> None:
    fields = dict.fromkeys(("physical_offset", "sys_flag", "store_timestamp"), 0)
    hosts = {"born_host": bytes(8), "store_host": bytes(8), "born_timestamp": 1, "version": 1}
    made: list[dict[str, object]] = [
        {**fields, **hosts, "topic": "T", "queue_id": 0, "body": b"b", "queue_offset": number}
        | {"properties": f"KEYS\x01k{number} l\x02DELAY\x01{number}".encode()}
        for number in range(4)
    ]
    log, sizes = log_of(made)
    whole = read_block(memoryview(log), FIRST, 0, sizes, TopicNames())
    some = whole.take(np.array([1, 3]))
    assert some.queue_offset.tolist() == [1, 3]
    assert some.key_row.tolist() == [0, 0, 1, 1]
    assert some.key_hash.tolist() == whole.key_hash[[2, 3, 6, 7]].tolist()
    assert some.texts == {0: whole.texts[1], 1: whole.texts[3]}
