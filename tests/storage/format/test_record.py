"""Records of the commit log: decoding them, and detecting damage without an exception."""

from array import array
from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidMessageError
from storage.format.check import CheckKind, RecordScan, check_record, scan_records
from storage.format.crc import crc32
from storage.format.errors import BodyError, RecordError
from storage.format.record import (
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    blank_record,
    decode_record,
    encode_record,
    read_head,
)
from tests.support.inner_messages import int32s, int64s, ipv4_hosts, ipv6_hosts, times

NO_SIZES = array("q")
PLAIN: dict[str, Any] = {
    "topic": "TopicTest",
    "queue_id": 0,
    "body": b"body",
    "properties": b"TAGS\x01TagA",
    "queue_offset": 0,
    "physical_offset": 0,
    "store_timestamp": 1,
    "born_timestamp": 1,
    "born_host": bytes(8),
    "store_host": bytes(8),
}

fields: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "topic": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        "queue_id": int32s,
        "body": st.binary(max_size=50),
        "properties": st.binary(max_size=50),
        "queue_offset": int64s,
        "physical_offset": int64s,
        "store_timestamp": times,
        "born_timestamp": times,
        "born_host": ipv4_hosts | ipv6_hosts,
        "store_host": ipv4_hosts | ipv6_hosts,
        "flag": int32s,
        "sys_flag": st.sampled_from([0, 1, 2, 4, 8, 0xC, 0x30, 0x301, 0xFF]),
        "reconsume_times": int32s,
        "prepared_transaction_offset": int64s,
        "version": st.sampled_from([1, 2]),
    }
)
records = fields.map(lambda given: encode_record(**given))


def raw_record(body: bytes, topic: bytes, properties: bytes) -> bytearray:
    """A record whose parts are as long as their length fields say if these are read unsigned."""
    head = bytearray(encode_record(**PLAIN | {"body": body})[:88])
    parts = (body, bytes((len(topic),)), topic, len(properties).to_bytes(2, "big"), properties)
    head[:4] = (88 + sum(map(len, parts))).to_bytes(4, "big")
    return head + b"".join(parts)


@st.composite
def lying_records(draw: st.DrawFn) -> bytes:
    """A record with a length that is negative, or too large, or leaves bytes at the end."""
    body = draw(st.sampled_from([b"", b"body"]))
    topic = bytes(draw(st.sampled_from([0, 5, 127, 128, 200, 255])))
    properties = bytes(draw(st.sampled_from([0, 5, 32767, 32768, 65535])))
    buffer = raw_record(body, topic, properties)
    if draw(st.booleans()):
        buffer[3] += 1
        buffer += b"?"
    if draw(st.booleans()):
        lie = draw(st.sampled_from([-1, 1 << 30, len(body) + 1]))
        buffer[84:88] = lie.to_bytes(4, "big", signed=True)
    return bytes(buffer)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A run of records with some bytes changed, and perhaps cut off."""
    any_records = st.lists(records | lying_records(), min_size=1, max_size=3)
    buffer = bytearray(b"".join(draw(any_records)))
    buffer += draw(st.sampled_from([b"", blank_record(100), bytes(100)]))
    for _ in range(draw(st.sampled_from([0, 0, 1, 3]))):
        at = draw(st.integers(0, len(buffer) - 1))
        buffer[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, buffer[at] ^ 1]))
    return bytes(buffer[: draw(st.just(len(buffer)) | st.integers(0, len(buffer)))])


@given(fields)
def test_what_is_encoded_is_decoded_again(given: dict[str, Any]) -> None:
    buffer = encode_record(**given)
    message = decode_record(b"??" + buffer + b"??", 2)
    hosts = (len(given["born_host"]) == 20) << 4 | (len(given["store_host"]) == 20) << 5
    assert message.topic == given["topic"]
    assert message.stored_body == given["body"]
    assert message.property_bytes == given["properties"]
    assert message.commitlog_offset == given["physical_offset"]
    assert message.born_host_bytes == given["born_host"]
    assert message.store_host_bytes == given["store_host"]
    assert message.sys_flag == given["sys_flag"] & ~0x30 | hosts
    assert message.body_crc == crc32(given["body"])
    assert message.store_size == len(buffer)
    for name in (
        "queue_id", "queue_offset", "flag", "born_timestamp", "store_timestamp",
        "reconsume_times", "prepared_transaction_offset", "version",
    ):  # fmt: skip
        assert getattr(message, name) == given[name], name


@given(records)
@pytest.mark.slow
def test_the_fixed_fields_are_read_alike_by_both_readers(buffer: bytes) -> None:
    head = read_head(buffer)
    message = decode_record(buffer)
    assert head.total_size == len(buffer)
    assert head.head_size + head.body_length <= len(buffer)
    assert buffer[head.head_size :].startswith(message.stored_body)
    assert (head.store_timestamp, head.sys_flag) == (message.store_timestamp, message.sys_flag)


@given(damaged(), st.integers(-1, 100), st.none() | st.integers(-1, 300))
@pytest.mark.slow
def test_decoding_damage_raises_nothing_but_record_error(
    buffer: bytes, position: int, size: int | None
) -> None:
    try:
        message = decode_record(memoryview(buffer), position, size)
    except RecordError:
        return
    # A decoded record can be read, whatever it holds.
    assert encode_lengths(message.topic, message.stored_body, message.property_bytes)
    assert isinstance(message.properties, dict)
    assert message.born_host
    assert message.msg_id
    assert repr(message)
    assert message.delay_time_level is not None
    try:
        assert isinstance(message.body, bytes)
    except BodyError:
        assert message.sys_flag & 1


def encode_lengths(topic: str, body: bytes, properties: bytes) -> bool:
    return len(topic.encode()) >= 0 and len(body) >= 0 and len(properties) >= 0


class Underflow(Exception):
    """Java's BufferUnderflowException and IndexOutOfBoundsException."""


def check_as_java_does(buffer: bytes, position: int, limit: int) -> tuple[CheckKind, int]:
    """CommitLog.checkMessageAndReturnSize field by field (with version 2, as 5.x)."""

    def get(size: int) -> int:
        nonlocal position
        return int.from_bytes(take(size), "big", signed=True)

    def take(size: int) -> bytes:
        nonlocal position
        if size < 0 or position + size > limit:
            raise Underflow
        position += size
        return buffer[position - size : position]

    try:
        total, magic = get(4), get(4)
        if magic == 0xCBD43194 - (1 << 32):
            return CheckKind.BLANK, total
        if magic not in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2) or total < 0:
            raise Underflow
        body_crc = get(4)
        take(24)
        sys_flag = get(4)
        hosts = 20 if sys_flag & 0x10 else 8, 20 if sys_flag & 0x20 else 8
        take(8 + hosts[0] + 8 + hosts[1] + 4 + 8)
        body_length = get(4)
        if body_length > 0:
            body = take(body_length)
            if body_length > total or crc32(body) != body_crc:
                raise Underflow
        topic_length = get(1 if magic == MESSAGE_MAGIC_V1 else 2)
        take(topic_length)
        properties_length = get(2)
        if properties_length > 0:
            take(properties_length)
        if topic_length > total or properties_length > total:
            raise Underflow
    except Underflow:
        return CheckKind.INVALID, -1
    parts = 72 + sum(hosts) + max(0, body_length) + topic_length + max(0, properties_length)
    parts += 3 if magic == MESSAGE_MAGIC_V1 else 4
    return (CheckKind.MESSAGE if parts == total else CheckKind.INVALID), total


@given(damaged(), st.integers(0, 100))
@pytest.mark.slow
def test_any_bytes_are_judged_as_java_judges_them(buffer: bytes, position: int) -> None:
    for at in (0, position):
        result = check_record(buffer, at, len(buffer))
        assert (result.kind, result.size) == check_as_java_does(buffer, at, len(buffer))


@given(damaged())
@pytest.mark.slow
def test_decoding_takes_what_checking_takes(buffer: bytes) -> None:
    result = check_record(buffer, 0, len(buffer), check_crc=False)
    if result.kind is CheckKind.MESSAGE:
        assert decode_record(buffer, 0, result.size).store_size == result.size
        return
    assert result.reason or result.kind is CheckKind.BLANK
    with pytest.raises(RecordError):
        decode_record(buffer)


def checked_one_by_one(
    buffer: bytes | memoryview, limit: int, max_count: int, *, check_crc: bool = True
) -> RecordScan:
    """What scan_records gives, by its reference."""
    sizes = array("q")
    position = 0
    while len(sizes) < max_count:
        result = check_record(buffer, position, limit, check_crc)
        if result.kind is not CheckKind.MESSAGE:
            return RecordScan(sizes, position, result)
        sizes.append(result.size)
        position += result.size
    return RecordScan(sizes, position, None)


@given(damaged(), st.integers(0, 10), st.booleans())
@pytest.mark.slow
def test_scanning_gives_what_checking_one_by_one_gives(
    buffer: bytes, max_count: int, check_crc: bool
) -> None:
    expected = checked_one_by_one(buffer, len(buffer), max_count, check_crc=check_crc)
    view = memoryview(buffer)
    found = scan_records(view, 0, len(buffer), check_crc=check_crc, max_count=max_count)
    assert found == expected


@given(st.lists(st.tuples(records, st.integers(1, 700)), max_size=6), damaged())
@pytest.mark.slow
def test_scanning_many_gives_what_scanning_gives(runs: list[tuple[bytes, int]], end: bytes) -> None:
    buffer = memoryview(b"".join(record * count for record, count in runs) + end)
    for limit in (len(buffer), len(buffer) - 1):
        found = scan_records(buffer, 0, limit, max_count=5000)
        assert found == checked_one_by_one(buffer, limit, 5000)


@given(st.integers(0, 599), st.integers(0, 124), st.integers(1, 255))
@pytest.mark.slow
def test_scanning_many_stops_at_the_same_damage(number: int, place: int, change: int) -> None:
    plain = encode_record(**PLAIN)
    buffer = bytearray(plain * 600)
    buffer[number * len(plain) + place % len(plain)] ^= change
    view = memoryview(buffer)
    found = scan_records(view, 0, len(buffer), max_count=1000)
    assert found == checked_one_by_one(view, len(buffer), 1000)


@given(records, st.integers(0, 200))
def test_bytes_after_the_limit_do_not_count(buffer: bytes, limit: int) -> None:
    beyond = buffer + buffer
    assert check_record(beyond, 0, limit) == check_record(beyond[:limit], 0, limit)
    assert scan_records(beyond, 0, limit) == scan_records(beyond[:limit], 0, limit)


def test_a_wrong_crc_is_noticed_only_when_asked_for() -> None:
    buffer = bytearray(encode_record(**PLAIN))
    buffer[88] ^= 1
    assert check_record(buffer, 0, len(buffer)).kind is CheckKind.INVALID
    assert "CRC" in check_record(buffer, 0, len(buffer)).reason
    assert check_record(buffer, 0, len(buffer), check_crc=False).kind is CheckKind.MESSAGE
    assert decode_record(buffer).stored_body != b"body"


def test_a_size_that_the_unit_does_not_name_is_refused() -> None:
    buffer = encode_record(**PLAIN) * 2
    with pytest.raises(RecordError, match="expected are") as caught:
        decode_record(buffer, 0, len(buffer) // 2 + 1)
    assert caught.value.position == 0


def test_a_record_of_wrong_parts_gives_the_size_it_claims() -> None:
    buffer = bytearray(encode_record(**PLAIN) + bytes(10))
    buffer[3] += 1
    result = check_record(buffer, 0, len(buffer))
    assert (result.kind, result.size) == (CheckKind.INVALID, len(buffer) - 9)


def topic_that_points_back_into_the_body() -> bytearray:
    """Read as negative, the topic's length leads to a length of properties that would fit."""
    buffer = raw_record(bytes(73) + b"\x00\x80" + bytes(125), b"", b"")
    buffer[288] = 0x80
    buffer[8:12] = crc32(buffer[88:288]).to_bytes(4, "big")
    return buffer


@pytest.mark.parametrize(
    "buffer",
    [
        raw_record(b"body", bytes(128), b""),
        raw_record(b"body", bytes(200), b"TAGS\x01TagA"),
        raw_record(b"body", b"T", bytes(32768)),
        raw_record(b"", b"T", bytes(65535)),
        topic_that_points_back_into_the_body(),
    ],
)
def test_lengths_are_signed(buffer: bytearray) -> None:
    assert check_record(buffer, 0, len(buffer)).kind is CheckKind.INVALID
    assert scan_records(buffer, 0, len(buffer)).sizes == NO_SIZES
    with pytest.raises(RecordError):
        decode_record(buffer)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"topic": "t" * 128}, "topic"),
        ({"topic": "t" * 32768, "version": 2}, "topic"),
        ({"properties": bytes(32768)}, "properties"),
    ],
)
def test_what_a_length_field_can_not_hold_is_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidMessageError, match=what):
        encode_record(**PLAIN | changes)


def test_a_blank_record_needs_eight_bytes() -> None:
    assert blank_record(8) == b"\0\0\0\x08\xcb\xd4\x31\x94"
    with pytest.raises(ValueError, match="7"):
        blank_record(7)
