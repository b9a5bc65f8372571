"""Units of ConsumeQueueExt."""

from struct import pack

import pytest
from hypothesis import given, strategies as st

from storage.format.cqext import ExtUnit, decode_ext_unit, ext_address, ext_offset
from storage.format.errors import FormatError
from tests.support.inner_messages import int64s


def encoded(tags_code: int, stored: int, bits: bytes) -> bytes:
    return pack(">h2qh", 20 + len(bits), tags_code, stored, len(bits)) + bits


@given(int64s, int64s, st.binary(max_size=30))
def test_units_are_decoded(tags_code: int, stored: int, bits: bytes) -> None:
    buffer = b"??" + encoded(tags_code, stored, bits)
    assert decode_ext_unit(buffer, 2) == ExtUnit(20 + len(bits), tags_code, stored, bits)


@given(st.integers(0, 1 << 40))
def test_addresses_come_back(offset: int) -> None:
    assert ext_offset(ext_address(offset)) == offset


def test_a_tag_hash_is_no_address() -> None:
    with pytest.raises(ValueError, match="2598919"):
        ext_offset(2598919)


@pytest.mark.parametrize("buffer", [b"", b"\0", b"\xff\xff", b"\0\0" + bytes(40)])
def test_the_end_of_a_file_is_no_unit(buffer: bytes) -> None:
    assert decode_ext_unit(buffer, 0) is None
    assert decode_ext_unit(buffer, 100) is None
    assert decode_ext_unit(buffer, -1) is None


@pytest.mark.parametrize(
    "buffer",
    [
        pack(">h", 19) + bytes(40),
        encoded(1, 2, b"abc")[:-1],
        pack(">h2qh", 20, 1, 2, 1),
        pack(">h2qh", 20, 1, 2, -1),
    ],
)
def test_damage_is_a_format_error(buffer: bytes) -> None:
    with pytest.raises(FormatError):
        decode_ext_unit(buffer, 0)
