"""Records whose original properties are unknown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from storage.format.sys_flag import REPLACED_FLAG
from storage.record_batch.record_batch import MARK_ODD, RecordBatch

Mask = NDArray[np.bool_]
"""One flag for each record of a block."""


def replaced_records(block: RecordBatch) -> Mask:
    """Records of zeros that a repair has put in the place of damaged ones."""
    replaced: Mask = block.sys_flag & REPLACED_FLAG != 0
    return replaced


def damaged_properties(block: RecordBatch) -> Mask:
    """Records whose properties no client has written: they end in a zero byte or are not UTF-8."""
    damaged = np.zeros(len(block), np.bool_)
    for row in block.marked(MARK_ODD):
        text = block.texts[row]
        damaged[row] = text[-1:] == b"\0" or not _is_utf8(text)
    return damaged


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
