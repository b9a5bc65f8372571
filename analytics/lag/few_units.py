"""The units of a few messages of a queue, read in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE

if TYPE_CHECKING:
    from storage.readonly import StoreView

_FEW: Final = 64


def few_unit_bytes(
    view: StoreView, topic: str, queue_id: int, first: int, bounds: tuple[int, int]
) -> memoryview | None:
    """The units of each message from ``first`` to the end of the queue, 20 bytes each.

    ``bounds`` are those of the queue, ``first`` lies within them. None where there are many, and
    where some are missing.
    """
    count = bounds[1] - first
    units = view.unit_view(topic, queue_id, first, bounds[1], bounds) if count <= _FEW else None
    return None if units is None or len(units) < count * CQ_STORE_UNIT_SIZE else units


def few_units(
    view: StoreView, topic: str, queue_id: int, first: int, bounds: tuple[int, int]
) -> list[tuple[int, int, int]] | None:
    """Log offset, size and tags code of each of these messages; None also where some units name no
    record."""
    units = few_unit_bytes(view, topic, queue_id, first, bounds)
    if units is None:
        return None
    found: list[tuple[int, int, int]] = [*CQ_STORE_UNIT.iter_unpack(units)]
    for _, size, _ in found:
        if not 0 < size < PRE_BLANK_SIZE:
            return None
    return found
