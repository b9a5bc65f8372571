"""Compressed bodies."""

import sys
import tracemalloc
import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from storage.format.compress import compress, decompress
from storage.format.errors import BodyError, BodyTooLargeError, CompressionTypeError

ZLIB = 0x301
LZ4, ZSTD = 0x101, 0x201
HELLO = b"hello hello hello"
LZ4_FRAME = bytes.fromhex(
    "04224d1868401100000000000000e81100008068656c6c6f2068656c6c6f2068656c6c6f00000000"
)
ZSTD_FRAME = bytes.fromhex("28b52ffd20116500003068656c6c6f200100314a11")


@given(st.binary(), st.sampled_from([0x1, ZLIB]))
def test_what_is_compressed_comes_back(body: bytes, sys_flag: int) -> None:
    assert decompress(compress(body), sys_flag, len(body)) == body


@given(st.binary(), st.sampled_from([0, 0x300, 2, 8]))
def test_a_body_without_the_flag_is_left_alone(body: bytes, sys_flag: int) -> None:
    assert decompress(body, sys_flag, 0) is body


def test_an_empty_body_needs_no_stream() -> None:
    assert decompress(b"", ZLIB) == b""


@pytest.mark.slow
def test_a_body_that_inflates_beyond_the_limit_is_given_up_early() -> None:
    bomb = zlib.compress(bytes(50 << 20), 9)
    assert len(bomb) < 60_000
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLargeError, match="1000000 bytes") as caught:
            decompress(bomb, ZLIB, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert caught.value.limit == 1_000_000


def test_a_body_of_exactly_the_limit_passes() -> None:
    assert decompress(compress(bytes(100)), ZLIB, 100) == bytes(100)
    with pytest.raises(BodyTooLargeError):
        decompress(compress(bytes(100)), ZLIB, 99)


@given(st.binary(min_size=1), st.integers(0, 200), st.integers(0, 255))
def test_damage_raises_nothing_but_body_error(body: bytes, at: int, value: int) -> None:
    packed = bytearray(compress(body))
    packed[at % len(packed)] = value
    for data in (bytes(packed), compress(body)[:-1]):
        try:
            assert isinstance(decompress(data, ZLIB), bytes)
        except BodyError as error:
            assert "damaged" in str(error)  # noqa: PT017 - it may also pass unharmed


def test_a_stream_that_ends_early_is_damage() -> None:
    with pytest.raises(BodyError, match="too early"):
        decompress(compress(b"x" * 100)[:-5], ZLIB)


@pytest.mark.parametrize("sys_flag", [0x401, 0x501, 0x701])
def test_an_unknown_method_is_named(sys_flag: int) -> None:
    with pytest.raises(CompressionTypeError, match=str(sys_flag >> 8)):
        decompress(b"x", sys_flag)


@pytest.mark.parametrize(
    ("module", "sys_flag", "frame"),
    [("lz4.frame", LZ4, LZ4_FRAME), ("zstandard", ZSTD, ZSTD_FRAME)],
)
def test_a_missing_library_is_named(
    module: str, sys_flag: int, frame: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CompressionTypeError, match=f"install .* {module.partition('.')[0]} "):
        decompress(frame, sys_flag)


def inflated(frame: bytes, sys_flag: int, limit: int = 100) -> bytes | str:
    """The body, or what the error says."""
    try:
        return decompress(frame, sys_flag, limit)
    except BodyError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("sys_flag", "frame"), [(LZ4, LZ4_FRAME), (ZSTD, ZSTD_FRAME)])
def test_frames_of_lz4_and_zstd_are_read(sys_flag: int, frame: bytes) -> None:
    assert inflated(frame, sys_flag) == HELLO
    assert inflated(frame, sys_flag, len(HELLO)) == HELLO
    assert "more than 16 bytes" in str(inflated(frame, sys_flag, len(HELLO) - 1))
    for damaged in (frame[:-5], b"no frame at all"):
        assert str(inflated(damaged, sys_flag)).startswith("BodyError")


def lz4_frame(body: bytes, *, size: bool, checksum: bool) -> bytes:
    frame: bytes = lz4.frame.compress(
        body, store_size=size, content_checksum=checksum, block_linked=size, block_checksum=checksum
    )
    return frame


def zstd_frame(body: bytes, *, size: bool, checksum: bool) -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=size, write_checksum=checksum)
    frame: bytes = compressor.compress(body)
    return frame


FRAMES = pytest.mark.parametrize(
    ("sys_flag", "packed"), [(LZ4, lz4_frame), (ZSTD, zstd_frame)], ids=["LZ4", "zstd"]
)
BODIES = st.binary(max_size=300) | st.builds(
    lambda part, count, end: part * count + end,
    st.binary(min_size=1, max_size=50),
    st.integers(1, 5000),
    st.binary(max_size=20),
)


@FRAMES
@given(body=BODIES, size=st.booleans(), checksum=st.booleans())
def test_what_other_libraries_compress_comes_back(packed, sys_flag, body, size, checksum) -> None:
    frame = packed(body, size=size, checksum=checksum)
    assert decompress(frame, sys_flag, len(body)) == body
    if body:
        with pytest.raises(BodyTooLargeError):
            decompress(frame, sys_flag, len(body) - 1)


@FRAMES
def test_bombs_of_lz4_and_zstd_are_given_up_early(packed, sys_flag) -> None:
    bomb = packed(bytes(50 << 20), size=False, checksum=True)
    assert len(bomb) < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLargeError, match="1000000 bytes"):
            decompress(bomb, sys_flag, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@FRAMES
@settings(max_examples=50)
@given(body=BODIES, at=st.integers(0, 5000), value=st.integers(0, 255))
def test_damaged_frames_raise_nothing_but_body_error(packed, sys_flag, body, at, value) -> None:
    frame = packed(body, size=True, checksum=True)
    damaged = bytearray(frame)
    damaged[at % len(damaged)] = value
    for data in (bytes(damaged), frame[:-1], frame[: at % len(frame)]):
        found = inflated(data, sys_flag, 1 << 20)
        assert isinstance(found, bytes) or found.startswith(("BodyError", "BodyTooLargeError"))
