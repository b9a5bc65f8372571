"""How full a disk is, as RocketMQ counts it."""

from __future__ import annotations

import os
from pathlib import Path


def used_ratio(path: Path) -> float:
    """Share of the disk that is used, of the space for ordinary users; whole per cents, rounded up.

    Blocks reserved for root belong to neither, as with ``df``
    (UtilAll.getDiskPartitionSpaceUsedPercent). Raises OSError.
    """
    space = os.statvfs(path)
    used = space.f_blocks - space.f_bfree
    entire = used + space.f_bavail
    return -(-used * 100 // entire) / 100 if entire else 0.0
