"""Delayed messages prepared by compiled code: the same records as by the pure form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as counted
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from broker.schedule.level import _NAMES
from broker.schedule.message import message_timeup
from storage.config import SMALL_STORE
from storage.format.encode import MessageInner, prepare, prepare_pure
from storage.format.message import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, MessageExt
from storage.format.prepared import PreparedRecords
from storage.store import MessageStore
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.examples import examples

pytestmark = needs_compiled

HOST = bytes((127, 0, 0, 1, 0, 0, 0, 9))
IMPOSSIBLE = ["a/b", ".", "..", "a\0b", "\x1f", "a\x7f"]
USUAL = b"REAL_TOPIC\1T\2REAL_QID\0010"

names = st.sampled_from(
    [
        "REAL_TOPIC",
        "REAL_QID",
        "UNIQ_KEY",
        "KEYS",
        "TAGS",
        "DELAY",
        "REAL_TOPICS",
        "INNER_MULTI_QUEUE_OFFSET",
        "",
        "other",
    ]
)
values = st.sampled_from(
    [
        "T",
        "%RETRY%g",
        TRANS_HALF_TOPIC,
        "0",
        "7",
        "007",
        "-1",
        "12345678901",
        "\u0663",
        "",
        "a b",
        " a  b ",
        "k" * 200,
        "\xe9",
        "\u4e2d\u6587",
        "a INNER_MULTI_QUEUE_OFFSET",
        *IMPOSSIBLE,
    ]
)
items = st.builds(lambda name, value: f"{name}\1{value}".encode(), names, values)
property_bytes = st.builds(
    lambda found, usual, first, end: (
        b"\2".join([USUAL] * (usual and first) + found + [USUAL] * (usual and not first)) + end
    ),
    st.lists(
        st.one_of(items, st.sampled_from([b"", b"no value", b"\1x", b"TAGS\1\xff"])), max_size=6
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from([b"", b"\2"]),
)
messages = st.builds(
    MessageInner,
    st.just(SCHEDULE_TOPIC),
    st.just(0),
    st.sampled_from([b"", b"body", bytes(3_000)]),
    property_bytes,
    st.integers(0, 1 << 40),
    st.sampled_from([HOST, HOST, HOST, bytes(20)]),
    st.just(HOST),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.sampled_from([0, 0, 0, 1, 8]),
    st.integers(0, 16),
    st.integers(0, 99),
    delay_time_level=st.just(1),
    delay_ms=st.just(1_000),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    root = tmp_path_factory.mktemp("delayed") / "store"
    MessageStore.create(root, SMALL_STORE)
    with MessageStore.open(root) as opened:
        yield opened


@pytest.fixture(autouse=True)
def with_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled.bind(MessageExt)
    monkeypatch.setattr(native, "compiled", compiled)


def columns(records: PreparedRecords) -> dict[str, Any]:
    """Everything that appending reads."""
    several = len(records.queues) > 1
    return {
        "image": bytes(records.buffer),
        "queues": records.queues,
        "queue_index": list(records.queue_index or []) if several else [],
        "has_unit": None if records.has_unit is None else list(records.has_unit),
        "delays": None if records.delays_ms is None else list(records.delays_ms),
        **{
            name: list(getattr(records, name))
            for name in ("starts", "sizes", "tags_codes", "key_hashes", "key_counts")
        },
    }


def waiting(store: MessageStore, sent: list[MessageInner]) -> tuple[int, bytes]:
    """Store messages in a level's queue; gives where they begin, and their units."""
    first = store.view.max_offset_in_queue(SCHEDULE_TOPIC, 0)
    for message in sent:
        store.put(prepare((message,)))
    return first, store.view.unit_bytes(SCHEDULE_TOPIC, 0, first, len(sent))


@pytest.mark.slow
@settings(max_examples=examples(300, short=20), deadline=None)
@given(sent=st.lists(messages, min_size=1, max_size=6))
def test_compiled_code_makes_the_records_that_python_makes(store, sent) -> None:
    first, units = waiting(store, sent)
    at = 0
    while at < len(sent):
        rest = units[at * 20 :]
        made = store.view.readdressed(SCHEDULE_TOPIC, 0, first + at, rest, _NAMES)
        if made is None:
            at += 1
            continue
        records, count = made
        found = store.view.messages_of_units(SCHEDULE_TOPIC, 0, first + at, rest[: count * 20])
        inners = [inner for m in found if m and (inner := message_timeup(m))]
        assert len(inners) == count
        assert columns(records) == columns(prepare_pure(inners))
        assert len(records) == count > 0
        at += count


@pytest.mark.parametrize(
    "properties",
    [
        USUAL,
        USUAL + b"\2",
        b"\2\2" + USUAL + b"\2TAGS\1A\2KEYS\1a b\2UNIQ_KEY\1u",
        b"REAL_QID\1x\2REAL_TOPIC\1\2" + USUAL,
        b"REAL_TOPIC\1%RETRY%g\2REAL_QID\001012345678",
        b"mine\1\xe4\xb8\xad\2" + USUAL,
    ],
)
def test_usual_messages_are_readdressed_by_compiled_code(store, properties) -> None:
    message = MessageInner(SCHEDULE_TOPIC, 0, b"body", properties, 1, HOST, HOST)
    first, units = waiting(store, [message] * 3)
    made = store.view.readdressed(SCHEDULE_TOPIC, 0, first, units, _NAMES)
    assert made is not None
    assert made[1] == 3


@pytest.mark.parametrize("topic", IMPOSSIBLE)
def test_a_topic_that_can_be_no_folder_ends_a_run(store, topic) -> None:
    odd = USUAL.replace(b"\1T", b"\1" + topic.encode())
    sent = [
        MessageInner(SCHEDULE_TOPIC, 0, b"x", properties, 1, HOST, HOST)
        for properties in (USUAL, odd, USUAL)
    ]
    first, units = waiting(store, sent)
    made = store.view.readdressed(SCHEDULE_TOPIC, 0, first, units, _NAMES)
    assert made is not None
    assert made[1] == 1
    assert store.view.readdressed(SCHEDULE_TOPIC, 0, first + 1, units[20:], _NAMES) is None


def test_a_run_of_very_many_queues_ends_and_goes_on(store) -> None:
    sent = [
        MessageInner(
            SCHEDULE_TOPIC, 0, b"x", b"REAL_TOPIC\1T%d\2REAL_QID\1%d" % (n, n % 3), 1, HOST, HOST
        )
        for n in range(150)
    ]
    first, units = waiting(store, sent)
    counts: list[int] = []
    for _ in counted():
        done = sum(counts)
        if done == len(sent):
            break
        made = store.view.readdressed(SCHEDULE_TOPIC, 0, first + done, units[done * 20 :], _NAMES)
        assert made is not None
        counts.append(made[1])
        assert len(made[0].queues) == made[1]
    assert counts == [64, 64, 22]


def test_a_record_that_is_not_whole_ends_a_run(store) -> None:
    message = MessageInner(SCHEDULE_TOPIC, 0, b"body" * 9, USUAL, 1, HOST, HOST)
    first, units = waiting(store, [message] * 4)
    wrong = units[:40] + units[20:40] + units[60:]
    made = store.view.readdressed(SCHEDULE_TOPIC, 0, first, wrong, _NAMES)
    assert made is not None
    assert made[1] == 2
    assert store.view.readdressed(SCHEDULE_TOPIC, 0, first + 1, units, _NAMES) is None
    assert store.view.readdressed(SCHEDULE_TOPIC, 0, first, b"", _NAMES) is None
    assert store.view.readdressed("unknown", 0, 0, units, _NAMES) is None


def test_where_nothing_is_compiled_all_is_left_to_python(store, monkeypatch) -> None:
    message = MessageInner(SCHEDULE_TOPIC, 0, b"body", USUAL, 1, HOST, HOST)
    first, units = waiting(store, [message])
    monkeypatch.setattr(native, "compiled", None)
    assert store.view.readdressed(SCHEDULE_TOPIC, 0, first, units, _NAMES) is None


@pytest.mark.parametrize("position", range(10))
def test_wrong_arguments_are_errors(position) -> None:
    right = (bytes(20), memoryview(b"x"), 0, b"\1T", 0, 0, 0, "a", "b", "c")
    wrong = list(right)
    wrong[position] = object()
    assert compiled.readdressed(*right) is None
    with pytest.raises(TypeError):
        compiled.readdressed(*wrong)
    with pytest.raises(TypeError):
        compiled.readdressed(*right[1:])
