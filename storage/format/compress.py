"""Compressed bodies (org.apache.rocketmq.common.compression).

sysFlag bit 0 says that a body is compressed, bits 8-10 how: 1 LZ4 frame, 2 zstd frame, 3 zlib, and
0 for writers older than 4.9.4, which knew zlib only. The broker never compresses; clients do, from
4096 bytes on, with zlib level 5. Inflating is bounded: a few bytes can claim to be gigabytes.
"""

from __future__ import annotations

import zlib
from typing import Final

from .errors import BodyError, BodyTooLargeError, CompressionTypeError
from .sys_flag import MessageSysFlag

COMPRESS_LEVEL: Final = 5
COMPRESS_OVER_BYTES: Final = 4096
MAX_INFLATED_BODY_SIZE: Final = 64 << 20

KEPT_BODY_SIZE: Final = 1 << 20
"""Most bytes of an inflated body that a message keeps; a larger one is inflated at each use, as
many messages may wait at once, and some KB are enough for one of the limit."""

_LARGEST_RATIO: Final = 1032
"""Bytes that one byte of a zlib stream can stand for; less with LZ4."""
_PIECE: Final = 256
_CUT: Final = "the compressed body is damaged: it ends too early"


def compress(body: bytes) -> bytes:
    """Pack a body as the 4.9 Java client does: a zlib stream of level 5.

    The caller sets ``COMPRESSED_FLAG | COMPRESSION_ZLIB_TYPE`` in sysFlag.
    """
    return zlib.compress(body, COMPRESS_LEVEL)


def most_inflated(stored_size: int, sys_flag: int) -> int:
    """An upper bound of a body's inflated size, by its stored size alone; 0 if sysFlag says that it
    is not compressed."""
    if not sys_flag & MessageSysFlag.COMPRESSED_FLAG:
        return 0
    if sys_flag & MessageSysFlag.COMPRESSION_TYPE_MASK == MessageSysFlag.COMPRESSION_ZSTD_TYPE:
        return MAX_INFLATED_BODY_SIZE  # four bytes can stand for 128 KiB
    return min(stored_size * _LARGEST_RATIO, MAX_INFLATED_BODY_SIZE)


def decompress(body: bytes, sys_flag: int, limit: int = MAX_INFLATED_BODY_SIZE) -> bytes:
    """Give the body as it was sent; ``body`` itself if sysFlag says it is not compressed.

    Never holds much more than twice ``limit`` bytes. Raises BodyTooLargeError beyond ``limit``
    bytes, CompressionTypeError for an unknown method or a missing library, BodyError for damage.
    """
    if not sys_flag & MessageSysFlag.COMPRESSED_FLAG or not body:
        return body
    kind = sys_flag & MessageSysFlag.COMPRESSION_TYPE_MASK
    if kind in (0, MessageSysFlag.COMPRESSION_ZLIB_TYPE):
        return _inflate_zlib(body, limit)
    if kind == MessageSysFlag.COMPRESSION_LZ4_TYPE:
        return _inflate_lz4(body, limit)
    if kind == MessageSysFlag.COMPRESSION_ZSTD_TYPE:
        return _inflate_zstd(body, limit)
    raise CompressionTypeError(f"the body is compressed by the unknown method {kind >> 8}")


def _inflate_zlib(body: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise BodyError(f"the compressed body is damaged: {error}") from error
    return _whole(inflated, limit, ended=inflater.eof)


def _inflate_lz4(body: bytes, limit: int) -> bytes:
    try:
        from lz4.frame import LZ4FrameDecompressor
    except ImportError:
        raise CompressionTypeError(
            "the body is compressed with LZ4; install the Python package lz4 to read it"
        ) from None
    inflater = LZ4FrameDecompressor()
    try:
        inflated: bytes = inflater.decompress(body, limit + 1)
    except (RuntimeError, EOFError) as error:
        raise BodyError(f"the compressed body is damaged: {error}") from error
    return _whole(inflated, limit, ended=inflater.eof)


def _whole(inflated: bytes, limit: int, *, ended: bool) -> bytes:
    if len(inflated) > limit:
        raise BodyTooLargeError(limit)
    if not ended:
        raise BodyError(_CUT)
    return inflated


def _inflate_zstd(body: bytes, limit: int) -> bytes:
    try:
        from zstandard import ZstdDecompressor, ZstdError
    except ImportError:
        raise CompressionTypeError(
            "the body is compressed with zstd; install the Python package zstandard to read it"
        ) from None
    inflater = ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    pieces: list[bytes] = []
    size = 0
    try:
        # The library bounds no output, so input goes in by pieces that cannot become much: a
        # zstd block of 4 bytes stands for 128 KiB at most.
        for start in range(0, len(body), _PIECE):
            piece: bytes = inflater.decompress(body[start : start + _PIECE])
            size += len(piece)
            if size > limit:
                raise BodyTooLargeError(limit)
            pieces.append(piece)
            if inflater.eof:
                return b"".join(pieces)
    except ZstdError as error:
        raise BodyError(f"the compressed body is damaged: {error}") from error
    raise BodyError(_CUT)
