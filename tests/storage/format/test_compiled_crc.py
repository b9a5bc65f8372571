"""The compiled checksum is zlib's, for any bytes at any place of a buffer."""

from __future__ import annotations

import zlib

from hypothesis import given, strategies as st

from tests.support.compiled import compiled, needs_compiled

BYTES = bytes(range(256)) * 40


@needs_compiled
@given(st.binary(max_size=300))
def test_any_bytes_have_the_checksum_that_zlib_gives(data: bytes) -> None:
    assert compiled.crc32(data) == zlib.crc32(data)


@needs_compiled
@given(st.integers(0, 300), st.integers(0, 10_000))
def test_it_may_begin_at_any_place(start: int, length: int) -> None:
    piece = memoryview(BYTES)[start : start + length]
    assert {compiled.crc32(piece), *compiled.crc32_ways(piece)} == {zlib.crc32(piece)}
