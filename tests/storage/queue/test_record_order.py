"""Which of the queue offsets that records claim count."""

import numpy as np
import pytest

from storage.format.cq_unit import MAX_QUEUE_OFFSET, MOST_LOST
from storage.queue.record_order import OffsetRun, QueueOrder
from storage.tools.rebuild.queue_build import UNIT, pieces_of

HUGE = 1 << 40


def order(*claims: int, at_once: int = 1000) -> dict[int, int]:
    """Queue offset -> number of the record whose unit it gets; ascending and without overlap."""
    queue = QueueOrder()
    given: dict[int, int] = {}
    units = np.zeros(len(claims), UNIT)
    units["offset"] = np.arange(len(claims))
    numbers = np.array(claims, np.int64)
    pieces: list[OffsetRun] = []
    for start in range(0, len(claims), at_once):
        part = slice(start, start + at_once)
        for piece in pieces_of(numbers[part], units[part], np.ones(len(numbers[part]), int)):
            pieces += queue.take(piece)
    pieces += list(queue.rest())
    end = -1
    for piece in pieces:
        assert piece.units
        assert piece.first >= end
        end = piece.end
        for number, unit in enumerate(np.frombuffer(piece.units, UNIT)):
            given[piece.first + number] = int(unit["offset"])
    assert queue.end in (end, None)
    return given


@pytest.mark.parametrize("at_once", [1, 2, 1000])
@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ((0, 1, 2), {0: 0, 1: 1, 2: 2}),
        ((7, 8), {7: 0, 8: 1}),  # the older ones are deleted
        ((5,), {5: 0}),
        ((0, 1, 1, 2), {0: 0, 1: 1, 2: 3}),  # repeated
        ((0, 1, 5, 6), {0: 0, 1: 1, 5: 2, 6: 3}),  # three are lost
        ((0, 1, 9, 3, 4), {0: 0, 1: 1, 3: 3, 4: 4}),  # 2 claims to be 9
        ((0, 1, HUGE, 3, 4), {0: 0, 1: 1, 3: 3, 4: 4}),
        ((HUGE, 1, 2), {1: 1, 2: 2}),  # the very first one is damaged
        ((0, 1, 2, 9), {0: 0, 1: 1, 2: 2, 9: 3}),  # nothing says that 9 is wrong
        ((0, 1, 2, 2 + 2 * MOST_LOST), {0: 0, 1: 1, 2: 2}),
        ((HUGE + 1,), {}),  # damaged, or a queue that does not exist
        ((HUGE + 1, HUGE + 2), {HUGE + 1: 0, HUGE + 2: 1}),  # two in a row do not lie
        ((0, 1, 3, 5, 6), {0: 0, 1: 1, 3: 2, 5: 3, 6: 4}),
        ((0, 1, 2, 3 + MOST_LOST), {0: 0, 1: 1, 2: 2, 3 + MOST_LOST: 3}),
        ((0, 1, 2, 4 + MOST_LOST), {0: 0, 1: 1, 2: 2}),
        ((HUGE,), {HUGE: 0}),
        (
            (MAX_QUEUE_OFFSET - 2, MAX_QUEUE_OFFSET - 1),
            {MAX_QUEUE_OFFSET + n: n + 2 for n in (-2, -1)},
        ),
        ((MAX_QUEUE_OFFSET, MAX_QUEUE_OFFSET + 1), {}),
        ((0, 1, 5, 3, 6), {0: 0, 1: 1, 5: 2, 6: 4}),  # 3 comes too late
        ((0, 1, 5, 5, 6), {0: 0, 1: 1, 5: 3, 6: 4}),  # the one that is continued counts
    ],
)
def test_claims(claims: tuple[int, ...], expected: dict[int, int], at_once: int) -> None:
    assert order(*claims, at_once=at_once) == expected
