"""Consume queue units."""

import pytest
from hypothesis import given, strategies as st

from storage.format.cq_unit import (
    CQ_STORE_UNIT_SIZE,
    MAX_EXT_ADDR,
    MAX_QUEUE_OFFSET,
    MOST_LOST,
    PRE_BLANK,
    StoreUnit,
    is_ext_addr,
    iter_units,
)
from tests.support.inner_messages import int32s, int64s

units = st.builds(StoreUnit, int64s, int32s, int64s)


@given(st.lists(units), st.integers(0, CQ_STORE_UNIT_SIZE - 1))
def test_units_come_back_and_a_torn_one_at_the_end_is_left_out(
    written: list[StoreUnit], torn: int
) -> None:
    buffer = b"".join(unit.pack() for unit in written) + bytes(torn)
    assert list(iter_units(buffer)) == written
    assert list(iter_units(memoryview(buffer))) == written


@given(units, st.integers(0, 5))
def test_a_unit_is_read_at_its_place(unit: StoreUnit, position: int) -> None:
    assert StoreUnit.unpack_from(bytes(position) + unit.pack(), position) == unit


@pytest.mark.parametrize(
    ("unit", "present", "pre_blank"),
    [
        (StoreUnit(0, 100, 0), True, False),
        (StoreUnit(0, 0, 0), False, False),
        (StoreUnit(-1, 100, 0), False, False),
        (StoreUnit(5, -1, 0), False, False),
        (StoreUnit.unpack_from(PRE_BLANK), True, True),
        (StoreUnit(1, 0x7FFFFFFF, 0), True, False),
    ],
)
def test_fillers_and_empty_units_are_told_apart(
    unit: StoreUnit, present: bool, pre_blank: bool
) -> None:
    assert (unit.is_present, unit.is_pre_blank) == (present, pre_blank)


@given(int32s)
def test_no_tag_hash_is_an_ext_address(tags_code: int) -> None:
    assert not is_ext_addr(tags_code)
    assert is_ext_addr(MAX_EXT_ADDR)


def test_the_numbers_are_those_of_the_format() -> None:
    assert CQ_STORE_UNIT_SIZE == 20
    assert bytes.fromhex("0000000000000000 7fffffff 0000000000000000") == PRE_BLANK
    assert MAX_EXT_ADDR == -2_147_483_649
    assert not is_ext_addr(-2_147_483_648)
    assert MAX_QUEUE_OFFSET == 1 << 56
    assert MOST_LOST == 1_000_000
