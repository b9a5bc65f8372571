"""The fixed parts of many records as rows of one matrix, and columns to fill it with."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .crc import CRC_MASK, whole_crc32
from .prepared_many import Longs


def _head_type(born: int, store: int) -> np.dtype[Any]:
    return np.dtype(
        [
            ("total_size", ">i4"),
            ("magic", ">i4"),
            ("body_crc", ">i4"),
            ("queue_id", ">i4"),
            ("flag", ">i4"),
            ("queue_offset", ">i8"),
            ("physical_offset", ">i8"),
            ("sys_flag", ">i4"),
            ("born_timestamp", ">i8"),
            ("born_host", f"V{born}"),
            ("store_timestamp", ">i8"),
            ("store_host", f"V{store}"),
            ("reconsume_times", ">i4"),
            ("prepared_transaction_offset", ">i8"),
            ("body_length", ">i4"),
        ]
    )


# By the two IPv6 bits, as layout.HEADS.
HEAD_TYPES: Final = tuple(_head_type(born, store) for store in (8, 20) for born in (8, 20))


def lengths_of(items: Sequence[Sized]) -> Longs:
    """Measure each item."""
    return np.fromiter(map(len, items), np.int64, len(items))


def rows_of(matrix: NDArray[Any]) -> list[bytes]:
    """Give the rows of a contiguous matrix, or the items of a structured array, as bytes."""
    size = matrix.nbytes // len(matrix)
    rows: list[bytes] = matrix.view(f"V{size}").reshape(len(matrix)).tolist()
    return rows


def checksums_of(bodies: Sequence[bytes]) -> Longs:
    """Give each body's CRC as it is stored."""
    return np.fromiter(map(whole_crc32, bodies), np.int64, len(bodies)) & CRC_MASK
