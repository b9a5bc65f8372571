"""Ids made by the broker and by the client."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given, strategies as st

from storage.format.message_id import (
    UniqueIds,
    _numbered,
    _unique_id,
    decode_unique_id,
    month_bounds,
    offset_msg_id,
    parse_offset_msg_id,
)
from tests.support.compiled import compiled, needs_compiled
from tests.support.inner_messages import int64s, ipv4_hosts, ipv6_hosts

NOW = 1_700_000_000_000


def new_ids(tz: tzinfo = UTC) -> UniqueIds:
    return UniqueIds(bytes((10, 0, 0, 1)), 70_000, -1, tz)


@given(ipv4_hosts | ipv6_hosts, int64s)
def test_broker_ids_come_back(host: bytes, offset: int) -> None:
    msg_id = offset_msg_id(host, offset)
    assert msg_id == msg_id.upper()
    assert len(msg_id) == 2 * len(host) + 16
    assert parse_offset_msg_id(msg_id) == (host, offset)


@pytest.mark.parametrize("msg_id", ["", "7F", "x" * 32, "0" * 31, "0" * 57, " 0" * 16])
def test_other_texts_are_no_broker_ids(msg_id: str) -> None:
    with pytest.raises(ValueError, match="no offsetMsgId"):
        parse_offset_msg_id(msg_id)


@given(st.integers(0, 200), st.lists(st.integers(0, 5), max_size=20), st.integers(-2, 2))
def test_a_block_is_what_one_by_one_gives(before: int, counts: list[int], step: int) -> None:
    one_by_one, in_blocks = new_ids(), new_ids()
    assert [one_by_one.next(NOW).encode() for _ in range(before)] == [*in_blocks.take(before, NOW)]
    for i, count in enumerate(counts):
        now = NOW + i * step
        column = in_blocks.take(count, now)
        wanted = [one_by_one.next(now).encode() for _ in range(count)]
        assert [*column] == wanted
        assert len(column) == count
        assert column[1:-1] == wanted[1:-1]
        assert column[::-2] == wanted[::-2]
        assert not wanted or column[-1] == wanted[-1]


@pytest.mark.slow
def test_ids_differ_also_when_the_counter_wraps_within_a_millisecond() -> None:
    ids = new_ids()
    block = [*ids.take(140_000, NOW)]
    block += [ids.next(NOW).encode() for _ in range(10)]
    assert len(set(block)) == 140_010


@pytest.mark.slow
def test_ids_differ_when_the_clock_steps_back() -> None:
    ids = new_ids()
    block = [*ids.take(70_000, NOW + 5), *ids.take(70_000, NOW), *ids.take(70_000, NOW + 5)]
    assert len(set(block)) == 210_000


@given(st.integers(1_600_000_000_000, 1_900_000_000_000), st.sampled_from([-11, 0, 8]))
def test_an_id_tells_when_it_was_made(now: int, hours: int) -> None:
    tz = timezone(timedelta(hours=hours))
    ids = UniqueIds(bytes(16), 70_000, 5, tz)
    parts = decode_unique_id(ids.next(now), now + 1, tz)
    assert parts == (bytes(16), 70_000 & 0xFFFF, 5, now, 0)


def test_an_id_of_the_last_day_of_the_month_is_decoded_in_the_next_month() -> None:
    made = int(datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp() * 1000)
    unique_id = new_ids().next(made)
    assert decode_unique_id(unique_id, made + 2_000, UTC).born_timestamp == made


def test_the_last_days_of_a_long_month_do_not_overflow() -> None:
    made = int(datetime(2023, 12, 31, 12, tzinfo=UTC).timestamp() * 1000)
    assert made - month_bounds(made, UTC)[0] > 1 << 31
    assert decode_unique_id(new_ids().next(made), made + 1, UTC).born_timestamp == made


def test_a_month_begins_at_local_midnight() -> None:
    tz = timezone(timedelta(hours=8))
    start, end = month_bounds(NOW, tz)
    assert datetime.fromtimestamp(start / 1000, tz) == datetime(2023, 11, 1, tzinfo=tz)
    assert datetime.fromtimestamp(end / 1000, tz) == datetime(2023, 12, 1, tzinfo=tz)
    december = int(datetime(2023, 12, 5, tzinfo=tz).timestamp() * 1000)
    assert datetime.fromtimestamp(month_bounds(december, tz)[1] / 1000, tz).year == 2024


@pytest.mark.parametrize("unique_id", ["", "0" * 30, "g" * 32, "0" * 58, " 0" * 16])
def test_other_texts_are_no_unique_keys(unique_id: str) -> None:
    with pytest.raises(ValueError, match="no UNIQ_KEY"):
        decode_unique_id(unique_id, NOW, UTC)


def test_an_address_has_four_or_sixteen_bytes() -> None:
    with pytest.raises(ValueError, match="not 5"):
        UniqueIds(bytes(5), 1, 1)


@needs_compiled
@given(st.binary(max_size=40), st.integers(0, (1 << 16) - 1), st.integers(1, 700))
def test_compiled_numbers_are_those_of_the_pure_form(prefix: bytes, first: int, count: int) -> None:
    end = min(first + count, 1 << 16)
    assert compiled.numbered(prefix, first, end) == _numbered(prefix, first, end)


@needs_compiled
def test_counters_have_four_digits() -> None:
    for first, end in ((2, 1), (0, (1 << 16) + 1)):
        with pytest.raises(ValueError, match="four digits"):
            compiled.numbered(b"", first, end)


@needs_compiled
@given(st.text("0123456789ABCDEF", max_size=64), st.integers(0, 2**32 - 1), st.integers(0, 65_535))
def test_a_compiled_id_is_that_of_the_pure_form(fixed: str, time: int, counter: int) -> None:
    assert compiled.unique_id(fixed, time, counter) == _unique_id(fixed, time, counter)


@needs_compiled
def test_what_no_id_begins_with_is_refused() -> None:
    with pytest.raises(ValueError, match="beginning"):
        compiled.unique_id("0" * 65, 0, 0)
