"""The compiled checksum is zlib's, for any bytes at any place of a buffer."""

from __future__ import annotations

import zlib
from array import array

from hypothesis import given, strategies as st

from storage.format.host import pack_host
from storage.format.record import decode_record
from tests.support.compiled import compiled, needs_compiled

BYTES = bytes(range(256)) * 40
HOST = pack_host("10.0.0.7:10911")
IPV6_HOST = pack_host("[2001:db8::7]:10911")


@needs_compiled
@given(st.binary(max_size=300))
def test_any_bytes_have_the_checksum_that_zlib_gives(data: bytes) -> None:
    assert compiled.crc32(data) == zlib.crc32(data)


@needs_compiled
@given(st.integers(0, 300), st.integers(0, 10_000))
def test_it_may_begin_at_any_place(start: int, length: int) -> None:
    piece = memoryview(BYTES)[start : start + length]
    assert {compiled.crc32(piece), *compiled.crc32_ways(piece)} == {zlib.crc32(piece)}


@needs_compiled
@given(
    st.sampled_from([HOST, IPV6_HOST]),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3_000)), min_size=1, max_size=9),
)
def test_bodies_that_are_copied_on_the_way_are_whole(
    host: bytes, pieces: list[tuple[int, int]]
) -> None:
    bodies = [BYTES[start : start + length] for start, length in pieces]
    buffer, table, *_ = compiled.encode_column(
        "T", 0, bodies, 1, host, host, b"", None, None, None, 0, 0, -1
    )
    rows = array("q", table)
    for body, start, size in zip(bodies, rows[::7], rows[1::7], strict=True):
        record = decode_record(bytes(buffer[start : start + size]))
        assert (record.stored_body, record.body_crc) == (body, zlib.crc32(body) & 0x7FFFFFFF)
        assert record.born_host_bytes == host
