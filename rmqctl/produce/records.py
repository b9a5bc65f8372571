"""Splitting a stream of bytes into records, as they arrive."""

from collections.abc import Iterator
from typing import Final, Protocol

CHUNK_BYTES: Final = 1 << 20


class ByteSource(Protocol):
    """A source of records: a binary file, pipe or terminal."""

    def read1(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes with at most one read; empty at the end. Blocks for the first."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """``size`` bytes, fewer only at the end."""
        ...


class RecordTooLongError(ValueError):
    """A record is longer than any message may be; earlier records were yielded."""


def read_records(source: ByteSource, delimiter: bytes, longest: int) -> Iterator[list[bytes]]:
    """Lists of records; each list has the records that one read completed.

    Records of a pipe come as soon as they are written, those of a file per MiB. The delimiter is
    looked for from the left, and removed; the last record may lack it. An empty delimiter makes the
    whole input one record. Buffers at most ``longest`` bytes of an unfinished record, else
    RecordTooLongError.
    """
    if not delimiter:
        yield [_read_whole(source, longest)]
        return
    pending = b""
    while data := source.read1(CHUNK_BYTES):
        records = (pending + data if pending else data).split(delimiter)
        pending = records.pop()
        if records:
            yield records
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
