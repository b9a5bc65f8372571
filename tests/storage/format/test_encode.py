"""Preparing messages: compiled, by the reference, and in columns."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidMessageError
from storage.format.cq_unit import StoreUnit, iter_units
from storage.format.encode import MessageInner, prepare, prepare_pure
from storage.format.encode_column import prepare_column
from storage.format.java_hash import key_hash, tags_code
from storage.format.prepared import PreparedRecords
from storage.format.prepared_table import table_of_run
from storage.format.properties import encode_properties
from storage.format.record import decode_record, encode_record
from storage.format.sys_flag import gets_unit, is_indexed
from tests.support.compiled import compiled, native
from tests.support.inner_messages import inner_messages, ipv4_hosts, ipv6_hosts, names, topics

Prepare = Callable[[Sequence[MessageInner]], PreparedRecords]

batches = (
    st.lists(inner_messages(), min_size=1, max_size=12)
    | st.lists(inner_messages(ipv6_hosts), min_size=1, max_size=4)
    | st.lists(inner_messages(ipv4_hosts | ipv6_hosts), min_size=1, max_size=6)
)
FORMS = (prepare, prepare_pure)  # the first is compiled where that is possible
each_form = pytest.mark.parametrize("prepare_them", FORMS)

LOG_OFFSET = 5_000_000_000
STORED = 1_700_000_000_123


def in_a_table(messages: Sequence[MessageInner]) -> PreparedRecords:
    """Also a single message, which ``prepare`` treats differently."""
    return table_of_run(messages) or prepare_pure(messages)


def counts_of(prepared: PreparedRecords) -> list[int]:
    counts = prepared.key_counts
    return [counts] * len(prepared) if isinstance(counts, int) else [int(n) for n in counts]


def place(prepared: PreparedRecords) -> list[tuple[int, int, bytes]]:
    """Place records with the n-th queue going on from 100 * n, and give the units."""
    prepared.place(LOG_OFFSET, [100 * n for n in range(len(prepared.queues))], STORED)
    return prepared.units(LOG_OFFSET, STORED)


def expected_images(messages: Sequence[MessageInner]) -> list[bytes]:
    """The records as the reference encoder makes them, one by one."""
    queues = list(dict.fromkeys((message.topic, message.queue_id) for message in messages))
    following = {queue: 100 * number for number, queue in enumerate(queues)}
    images: list[bytes] = []
    for message in messages:
        queue = (message.topic, message.queue_id)
        queue_offset = following[queue] if gets_unit(message.sys_flag) else 0
        following[queue] += gets_unit(message.sys_flag)
        images.append(
            encode_record(
                topic=message.topic,
                queue_id=message.queue_id,
                body=message.body,
                properties=message.properties,
                queue_offset=queue_offset,
                physical_offset=LOG_OFFSET + sum(map(len, images)),
                store_timestamp=STORED,
                born_timestamp=message.born_timestamp,
                born_host=message.born_host,
                store_host=message.store_host,
                flag=message.flag,
                sys_flag=message.sys_flag,
                reconsume_times=message.reconsume_times,
                prepared_transaction_offset=message.prepared_transaction_offset,
            )
        )
    return images


@each_form
@given(messages=batches)
@pytest.mark.slow
def test_placed_records_are_those_of_the_reference_encoder(
    prepare_them: Prepare, messages: list[MessageInner]
) -> None:
    prepared = prepare_them(messages)
    place(prepared)
    images = expected_images(messages)
    assert prepared.buffer == b"".join(images)
    assert list(prepared.sizes) == [len(buffer) for buffer in images]
    places = zip(prepared.starts, prepared.sizes, strict=True)
    assert [prepared.buffer[start : start + size] for start, size in places] == images


@each_form
@given(messages=batches)
@pytest.mark.slow
def test_units_point_to_their_records_queue_by_queue(
    prepare_them: Prepare, messages: list[MessageInner]
) -> None:
    prepared = prepare_them(messages)
    units = place(prepared)
    assert [number for number, _, _ in units] == sorted({number for number, _, _ in units})
    seen = 0
    for number, count, block in units:
        topic, queue_id = prepared.queues[number]
        assert count == prepared.queue_counts()[number] == len(block) // 20
        for queue_offset, unit in enumerate(iter_units(block), 100 * number):
            seen += 1
            start = unit.commitlog_offset - LOG_OFFSET
            message = decode_record(prepared.buffer, start, unit.size)
            assert (message.topic, message.queue_id) == (topic, queue_id)
            assert (message.queue_offset, message.commitlog_offset) == (
                queue_offset,
                unit.commitlog_offset,
            )
            given = messages[list(prepared.starts).index(start)]
            delayed = given.delay_time_level > 0
            assert unit.tags_code == (STORED + 10_000 if delayed else tags_code(given.tags))
    assert seen == sum(gets_unit(message.sys_flag) for message in messages)


@each_form
@given(messages=batches)
@pytest.mark.slow
def test_keys_are_hashed_in_order_but_for_rolled_back_messages(
    prepare_them: Prepare, messages: list[MessageInner]
) -> None:
    prepared = prepare_them(messages)
    indexed = [message.keys if is_indexed(message.sys_flag) else () for message in messages]
    assert counts_of(prepared) == [len(keys) for keys in indexed]
    assert list(prepared.key_hashes) == [
        key_hash(message.topic, key)
        for message, keys in zip(messages, indexed, strict=True)
        for key in keys
    ]


@each_form
@given(messages=batches, limit=st.integers(0, 1500))
@pytest.mark.slow
def test_splitting_divides_after_the_last_record_that_fits(
    prepare_them: Prepare, messages: list[MessageInner], limit: int
) -> None:
    whole = prepare_them(messages)
    first, rest = prepare_them(messages).split(limit)
    assert len(first.buffer) <= limit
    if rest is None:
        assert first.buffer == whole.buffer
        return
    assert len(first.buffer) + int(rest.sizes[0]) > limit
    assert first.buffer + rest.buffer == whole.buffer
    assert len(first) + len(rest) == len(messages)
    assert [*first.key_hashes, *rest.key_hashes] == list(whole.key_hashes)
    assert counts_of(first) + counts_of(rest) == counts_of(whole)
    # Placed one after the other, the parts give what the whole gives.
    units: dict[int, bytes] = {}
    following = [100 * n for n in range(len(whole.queues))]
    offset = LOG_OFFSET
    for part in (first, rest):
        part.place(offset, following, STORED)
        for number, _, block in part.units(offset, STORED):
            units[number] = units.get(number, b"") + block
        following = [a + b for a, b in zip(following, part.queue_counts(), strict=True)]
        offset += len(part.buffer)
    assert units == {number: block for number, _, block in place(whole)}
    assert first.buffer + rest.buffer == whole.buffer


@given(messages=batches)
@pytest.mark.slow
def test_records_may_be_placed_again(messages: list[MessageInner]) -> None:
    once = prepare(messages)
    place(once)
    for prepared in [prepare_them(messages) for prepare_them in (*FORMS, in_a_table)]:
        prepared.place(1, [7] * len(prepared.queues), 9)
        place(prepared)
        assert prepared.buffer == once.buffer


@st.composite
def columns(draw: st.DrawFn) -> tuple[PreparedRecords, list[MessageInner]]:
    """A column, and the same messages one by one."""
    count = draw(st.integers(1, 8))
    topic = draw(topics)
    queue_ids = draw(st.just(3) | st.lists(st.integers(0, 2), min_size=count, max_size=count))
    bodies = draw(st.lists(st.binary(max_size=20), min_size=count, max_size=count))
    tags = draw(st.none() | names)
    key_texts = st.text(st.sampled_from("ab \u00e9\u4e2d\n"), max_size=6)
    keys = draw(
        st.none()
        | st.lists(names, min_size=count, max_size=count)
        | st.lists(key_texts, min_size=count, max_size=count)
    )
    unique_ids = None
    if draw(st.booleans()):
        unique_ids = [f"{draw(st.integers(0, 1 << 32)):032X}".encode() for _ in range(count)]
    shared = encode_properties({"TAGS": tags} if tags else {})
    sys_flag = draw(st.sampled_from([0, 4, 8, 12, 0x301]))
    delay_ms = draw(st.sampled_from([-1, 10_000]))
    born_host, store_host = draw(ipv4_hosts | ipv6_hosts), draw(ipv4_hosts | ipv6_hosts)
    messages = []
    for i in range(count):
        unique = () if unique_ids is None else (unique_ids[i].decode(),)
        text = "" if keys is None else keys[i]
        properties = encode_properties(
            {"TAGS": tags or "", "UNIQ_KEY": "".join(unique), "KEYS": text}
        )
        messages.append(
            MessageInner(
                topic,
                queue_ids if isinstance(queue_ids, int) else queue_ids[i],
                bodies[i],
                properties,
                born_timestamp=STORED - 5,
                born_host=born_host,
                store_host=store_host,
                flag=-7,
                sys_flag=sys_flag,
                tags=tags,
                keys=unique + tuple(key for key in text.split(" ") if key),
                delay_time_level=3 if delay_ms >= 0 else 0,
                delay_ms=max(0, delay_ms),
            )
        )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(native, "compiled", draw(st.sampled_from([compiled, None])))
        column = prepare_column(
            topic,
            queue_ids,
            bodies,
            born_timestamp=STORED - 5,
            born_host=born_host,
            store_host=store_host,
            properties=shared,
            tags=tags,
            unique_ids=unique_ids,
            keys=keys,
            flag=-7,
            sys_flag=sys_flag,
            delay_ms=delay_ms,
        )
    return column, messages


@given(columns())
@pytest.mark.slow
def test_a_column_is_the_same_as_its_messages_one_by_one(
    given: tuple[PreparedRecords, list[MessageInner]],
) -> None:
    column, messages = given
    one_by_one = prepare_pure(messages)
    assert place(column) == place(one_by_one)
    assert column.buffer == one_by_one.buffer
    assert column.queues == one_by_one.queues
    assert list(column.key_hashes) == list(one_by_one.key_hashes)
    assert counts_of(column) == counts_of(one_by_one)


PLAIN = MessageInner("TopicTest", 0, b"body", b"", 1, bytes(8), bytes(8))


@each_form
@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (PLAIN._replace(topic="t" * 128), "topic"),
        (PLAIN._replace(topic="\u4e3b" * 43), "129 bytes"),
        (PLAIN._replace(topic=""), "topic"),
        (PLAIN._replace(properties=bytes(32768)), "32767"),
    ],
)
@pytest.mark.parametrize("before", [[], [PLAIN, PLAIN]])
def test_what_a_length_field_can_not_hold_is_refused(
    prepare_them: Prepare, bad: MessageInner, what: str, before: list[MessageInner]
) -> None:
    with pytest.raises(InvalidMessageError, match=what):
        prepare_them([*before, bad])


def test_a_column_refuses_properties_that_do_not_fit() -> None:
    def column(keys: list[str]) -> PreparedRecords:
        return prepare_column(
            "T",
            0,
            [b"x", b"y"],
            born_timestamp=1,
            born_host=bytes(8),
            store_host=bytes(8),
            keys=keys,
        )

    longest = "k" * (32767 - len("KEYS\x01"))
    assert len(column(["a", longest])) == 2
    with pytest.raises(InvalidMessageError, match="32768 bytes"):
        column(["a", longest + "k"])


def column_of_nothing(messages: Sequence[MessageInner]) -> PreparedRecords:
    assert not messages
    return prepare_column("T", [], [], born_timestamp=1, born_host=bytes(8), store_host=bytes(8))


@pytest.mark.parametrize("prepare_them", [*FORMS, in_a_table, column_of_nothing])
def test_no_messages_give_no_records(prepare_them: Prepare) -> None:
    prepared = prepare_them([])
    assert len(prepared) == 0
    assert not prepared.buffer
    assert not prepared.queues
    assert not prepared.units(0, 1)
    prepared.place(0, [], 1)


def test_a_unit_of_one_message() -> None:
    prepared = prepare([PLAIN._replace(tags="TagA")])
    prepared.place(4096, [7], STORED)
    (number, count, block), = prepared.units(4096, STORED)  # fmt: skip
    assert (number, count) == (0, 1)
    assert StoreUnit.unpack_from(block) == (4096, 91 + 4 + 9, 2598919)
