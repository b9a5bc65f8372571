"""Units rebuilt in memory: runs of consecutive ones, whatever order and gaps the log has."""

from __future__ import annotations

from storage.format.cq_unit import MOST_LOST
from storage.queue.units_from_log import RebuiltUnits


def unit(number: int) -> bytes:
    return number.to_bytes(20, "big")


def with_offsets(*queue_offsets: int, known: int = 0) -> RebuiltUnits:
    found = RebuiltUnits()
    for number, queue_offset in enumerate(queue_offsets):
        found.add("T", 0, queue_offset, unit(number), known)
    found.finish()
    return found


def test_consecutive_units_are_one_run() -> None:
    found = with_offsets(3, 4, 5)
    assert (found.first_offset("T", 0), found.next_offset("T", 0)) == (3, 6)
    assert found.read("T", 0, 4, 9) == unit(1) + unit(2)
    assert found.read("T", 0, 4, 1) == unit(1)
    assert found.read("T", 0, 2, 9) == b""


def test_what_the_files_hold_already_is_not_taken() -> None:
    found = with_offsets(0, 1, 2, 3, known=2)
    assert (found.first_offset("T", 0), found.next_offset("T", 0)) == (2, 4)


def test_a_gap_begins_a_new_run() -> None:
    found = with_offsets(0, 1, 5, 6)
    assert found.next_offset("T", 0) == 7
    assert found.read("T", 0, 0, 9) == unit(0) + unit(1)
    assert found.read("T", 0, 2, 9) == b""
    assert found.next_run("T", 0, 2) == 5
    assert found.next_run("T", 0, 5) is None


def test_a_repetition_changes_nothing() -> None:
    found = with_offsets(0, 1, 1, 0, 2)
    assert found.read("T", 0, 0, 9) == unit(0) + unit(1) + unit(4)


def test_a_damaged_queue_offset_is_dropped_when_the_right_one_follows() -> None:
    found = with_offsets(0, 1, 1 << 30, 2, 3)
    assert found.next_offset("T", 0) == 4
    assert found.read("T", 0, 0, 9) == unit(0) + unit(1) + unit(3) + unit(4)
    found = with_offsets(7, 1 << 30, 5, 6, known=5)
    assert (found.first_offset("T", 0), found.next_offset("T", 0)) == (5, 7)


def test_a_gap_that_no_loss_explains_is_damage() -> None:
    """As in recovery, whether the queue goes on after it or not."""
    assert with_offsets(0, 1, 1 + MOST_LOST + 1).next_offset("T", 0) == MOST_LOST + 3
    assert with_offsets(0, 1, 2 + MOST_LOST + 1).next_offset("T", 0) == 2
    assert with_offsets(5 + MOST_LOST, known=5).next_offset("T", 0) == MOST_LOST + 6
    damaged = with_offsets(5 + MOST_LOST + 1, known=5)
    assert (damaged.next_offset("T", 0), damaged.queues()) == (0, [])
    assert with_offsets(1 << 41, known=1 << 41).next_offset("T", 0) == (1 << 41) + 1
    assert with_offsets(MOST_LOST * 5).next_offset("T", 0) == MOST_LOST * 5 + 1


def test_a_damaged_queue_offset_drops_no_run_of_others() -> None:
    found = with_offsets(100, 101, 102, 0, 103)
    assert (found.first_offset("T", 0), found.next_offset("T", 0)) == (100, 104)


def test_impossible_offsets_are_not_taken() -> None:
    found = with_offsets(-1, 1 << 50)
    assert found.next_offset("T", 0) == 0
    assert found.first_offset("Other", 0) is None
