"""The units of a few messages of a queue, read in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE

if TYPE_CHECKING:
    from storage.readonly import StoreView

_FEW: Final = 64


def few_units(
    view: StoreView, topic: str, queue_id: int, first: int, bounds: tuple[int, int]
) -> list[tuple[int, int, int]] | None:
    """Log offset, size and tags code of each message from ``first`` to the end of the queue.

    ``bounds`` are those of the queue, ``first`` lies within them. None where there are many, and
    where some units are missing or name no record.
    """
    count = bounds[1] - first
    units = view.unit_view(topic, queue_id, first, bounds[1], bounds) if count <= _FEW else None
    if units is None or len(units) < count * CQ_STORE_UNIT_SIZE:
        return None
    found: list[tuple[int, int, int]] = [*CQ_STORE_UNIT.iter_unpack(units)]
    for _, size, _ in found:
        if not 0 < size < PRE_BLANK_SIZE:
            return None
    return found
