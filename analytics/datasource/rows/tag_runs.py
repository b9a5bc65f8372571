"""The parts of a range whose messages may have a tag, by the hashes in the queue's units."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.datasource.query.topics import SYSTEM
from analytics.kernels.units import read_units
from storage.format.cq_unit import MAX_EXT_ADDR
from storage.format.java_hash import java_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.datasource.plan.ranges import Range
    from storage.readonly import StoreView

_UNITS: Final = 200_000
"""Units that are looked at together."""
_GAP: Final = 32
"""Messages in between that are cheaper to read than to skip."""
_OTHER_CODES: Final = SYSTEM
"""In some of RocketMQ's own topics the units hold times instead of hashes."""


def runs_of_tags(
    opened: Iterable[tuple[Range, StoreView]], tags: Collection[str]
) -> Iterator[tuple[Range, StoreView]]:
    """Cut ranges to the messages whose tag may be one of ``tags``.

    Others come, too: those with another tag of the same hash, those between two near ones, and
    those whose unit says nothing of their tag.
    """
    codes = np.array(sorted({java_hash(tag) for tag in tags}), np.int32)
    for part, view in opened:
        if part.topic.startswith(_OTHER_CODES):
            yield part, view
            continue
        for start in range(part.first, part.end, _UNITS):
            end = min(start + _UNITS, part.end)
            for first, stop in _runs(view, part, start, end, codes):
                yield part._replace(first=first, end=stop), view


def _runs(
    view: StoreView, part: Range, start: int, end: int, codes: NDArray[np.int32]
) -> Iterator[tuple[int, int]]:
    units = read_units(view, part.topic, part.queue_id, start, end)
    hashes = units.tags.astype(np.int32)  # the low 32 bits, as RocketMQ compares them
    wanted = np.isin(hashes, codes) | (units.sizes == 0) | (units.tags <= MAX_EXT_ADDR)
    (found,) = np.nonzero(wanted)
    if not len(found):
        return
    (cuts,) = np.nonzero(np.diff(found) > _GAP)
    firsts = found[np.concatenate(([0], cuts + 1))]
    lasts = found[np.concatenate((cuts, [len(found) - 1]))]
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        yield start + first, start + last + 1
