"""Cutting a stream of bytes into records, as many at a time as have arrived."""

from collections.abc import Iterator
from typing import Final, Protocol

CHUNK_BYTES: Final = 1 << 20


class ByteSource(Protocol):
    """What records are read from: a binary file, pipe or terminal."""

    def read1(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes with at most one read; empty at the end. Blocks for the first."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """``size`` bytes, fewer only at the end."""
        ...


class RecordTooLongError(ValueError):
    """A record is longer than any message may be; what came before it was given out."""


def read_records(source: ByteSource, delimiter: bytes, longest: int) -> Iterator[list[bytes]]:
    """Lists of records, each list what one read has completed.

    A pipe's records come as soon as they are written, a file's by the mebibyte. The delimiter is
    taken off, the last record need not have one, and an empty delimiter makes the whole input one
    record. Holds at most ``longest`` bytes of an unfinished record, else RecordTooLongError.
    """
    if not delimiter:
        yield [_read_whole(source, longest)]
        return
    pending = b""
    while data := source.read1(CHUNK_BYTES):
        block = pending + data if pending else data
        end = block.rfind(delimiter)
        if end < 0:
            pending = block
            _check(pending, longest)
            continue
        pending = block[end + len(delimiter) :]
        yield block[:end].split(delimiter)
        _check(pending, longest)
    if pending:
        yield [pending]


def _read_whole(source: ByteSource, longest: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while data := source.read1(CHUNK_BYTES):
        parts.append(data)
        size += len(data)
        if size > longest:
            _check(b"".join(parts), longest)
    return b"".join(parts)


def _check(pending: bytes, longest: int) -> None:
    if len(pending) > longest:
        raise RecordTooLongError(f"more than {longest} bytes without a delimiter")
