"""Java's String.hashCode of many strings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .java_hash import unsigned_java_hash

MAX_ROW: Final = 256
"""Characters of the longest text that is hashed by multiplying with powers of 31."""
_POWERS: Final = np.array([pow(31, n, 1 << 32) for n in range(MAX_ROW)], np.uint32)


def hash_many(texts: Sequence[str | bytes]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Hash texts as String.hashCode does, unsigned, and count their UTF-16 code units.

    Texts are all str, or all Latin-1 bytes. About 40 ns each if all are equally long, else some
    nanoseconds a character; a text beyond Latin-1 or of more than 256 characters sends all of
    them down the slow road.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    longest = int(lengths.max(initial=0))
    units = _latin1(texts) if longest <= len(_POWERS) else None
    if units is None:
        return _one_by_one(texts)
    if longest == 0:
        return np.zeros(len(texts), np.uint32), lengths
    if int(lengths.min()) == longest:
        return hash_rows(units.reshape(len(texts), longest)), lengths
    ends = np.cumsum(lengths)
    exponents = np.repeat(ends - 1, lengths) - np.arange(len(units))
    terms = np.append(units * _POWERS[exponents], np.uint32(0))
    # reduceat gives the term at the start of an empty group, and needs each start to exist.
    sums = np.add.reduceat(terms, ends - lengths, dtype=np.uint32)
    sums[lengths == 0] = 0
    return sums, lengths


def hash_rows(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Hash texts that are the rows of a matrix, unsigned: Latin-1, 1 to MAX_ROW characters."""
    hashes: NDArray[np.uint32] = rows.astype(np.uint32) @ _POWERS[rows.shape[1] - 1 :: -1]
    return hashes


def _latin1(texts: Sequence[str | bytes]) -> NDArray[np.uint8] | None:
    if not texts or isinstance(texts[0], bytes):
        return np.frombuffer(b"".join(texts), np.uint8)  # type: ignore[arg-type]
    try:
        return np.frombuffer("".join(texts).encode("latin-1"), np.uint8)  # type: ignore[arg-type]
    except UnicodeEncodeError:
        return None


def _one_by_one(
    texts: Sequence[str | bytes],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    strings = [text.decode("latin-1") if isinstance(text, bytes) else text for text in texts]
    hashes = np.array([unsigned_java_hash(text) for text in strings], np.uint32)
    counts = [len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in strings]
    return hashes, np.array(counts, np.int64)


def powers_of_31(exponents: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Give 31^n mod 2^32 for each exponent."""
    if int(exponents.max(initial=0)) < len(_POWERS):
        return _POWERS[exponents]
    return np.array([pow(31, n, 1 << 32) for n in exponents.tolist()], np.uint32)


def index_hashes_many(
    topic_hashes: int | NDArray[np.uint32], keys: Sequence[str | bytes]
) -> NDArray[np.int64]:
    """Hash keys for the index; ``topic_hashes`` are the unsigned hashes of ``topic#``, or one."""
    hashes, lengths = hash_many(keys)
    return _index_hashes(np.asarray(topic_hashes, np.uint32) * powers_of_31(lengths) + hashes)


def index_hashes_of_rows(
    topic_hashes: int | NDArray[np.uint32], keys: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """Hash keys for the index that are the rows of a matrix: ASCII, 1 to MAX_ROW characters.

    ``topic_hashes`` as for :func:`index_hashes_many`.
    """
    power = np.uint32(pow(31, keys.shape[1], 1 << 32))
    return _index_hashes(np.asarray(topic_hashes, np.uint32) * power + hash_rows(keys))


def _index_hashes(whole: NDArray[np.uint32]) -> NDArray[np.int64]:
    signed = whole.astype(np.uint32).view(np.int32).astype(np.int64)
    absolute: NDArray[np.int64] = np.abs(signed) & 0x7FFFFFFF  # -2^31 gives 0
    return absolute
