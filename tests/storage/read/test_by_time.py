"""Searching a queue by time: 4.9's nearest rule and the two bounds of 5.x."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.read.by_time import halve
from storage.readonly import Boundary, StoreView
from tests.support.compiled import native
from tests.support.examples import examples
from tests.support.hand_made import START_MS, TINY, HandMade


@pytest.fixture(autouse=True, params=["compiled", "pure"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test once with the compiled search and once without."""
    if request.param == "pure":
        monkeypatch.setattr(native, "compiled", None)


ROOMY = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=10_000)
FAR = 1 << 50


def with_times(times: list[int], root: Path, *, queue_file_units: int = 500) -> Path:
    config = ROOMY.with_(mapped_file_size_consume_queue=20 * queue_file_units)
    made = HandMade(config, timestamp=0)
    for time in times:
        made.put("T", step_ms=START_MS + time - made.timestamp)
    made.write(root)
    for path in (root / "consumequeue/T/0").iterdir():
        os.utime(path, ns=(FAR * 1000, FAR * 1000))
    return root


def test_the_worked_example_of_the_format_description(tmp_path: Path) -> None:
    with StoreView.open(with_times([437, 494, 501], tmp_path)) as view:
        answers = {0: 0, 437: 0, 438: 0, 490: 1, 494: 1, 498: 2, 10**9: 2}
        for time, offset in answers.items():
            assert view.offset_in_queue_by_time("T", 0, START_MS + time) == offset


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=25),
    asked=st.lists(st.integers(-2, 60), min_size=1, max_size=12),
    expired=st.booleans(),
)
@pytest.mark.slow
def test_lower_and_upper_are_the_first_and_last_by_comparison(
    steps: list[int], asked: list[int], expired: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    times = [sum(steps[: number + 1]) for number in range(len(steps))]
    root = with_times(times, tmp_path_factory.mktemp("store"), queue_file_units=4)
    with StoreView.open(root) as view:
        for time in asked:
            lower = view.offset_in_queue_by_time("T", 0, START_MS + time, Boundary.LOWER)
            upper = view.offset_in_queue_by_time("T", 0, START_MS + time, Boundary.UPPER)
            after = [number for number, stored in enumerate(times) if stored >= time]
            before = [number for number, stored in enumerate(times) if stored <= time]
            assert lower == (after[0] if after else len(times))
            assert upper == (before[-1] if before else 0)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.integers(1, 5), min_size=1, max_size=20),
    asked=st.lists(st.integers(-2, 80), min_size=1, max_size=12),
)
@pytest.mark.slow
def test_nearest_is_the_nearest_in_time_and_the_earlier_of_two(
    steps: list[int], asked: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    times = [sum(steps[: number + 1]) for number in range(len(steps))]
    with StoreView.open(with_times(times, tmp_path_factory.mktemp("store"))) as view:
        for time in asked:
            found = view.offset_in_queue_by_time("T", 0, START_MS + time)
            best = min(range(len(times)), key=lambda number: (abs(times[number] - time), number))
            assert found == best


def test_nearest_looks_only_into_the_file_that_the_file_times_choose(tmp_path: Path) -> None:
    root = with_times([0, 10, 20, 30, 40, 50], tmp_path, queue_file_units=2)
    files = sorted((root / "consumequeue/T/0").iterdir())
    for path, modified in zip(files, (5, 25, 55), strict=True):
        os.utime(path, ns=(0, (START_MS + modified) * 1_000_000))
    with StoreView.open(root) as view:
        # 10 lies in the first file, but that was last modified at 5: the second file is searched
        assert view.offset_in_queue_by_time("T", 0, START_MS + 10) == 2
        assert view.offset_in_queue_by_time("T", 0, START_MS + 10, Boundary.LOWER) == 1
        # newer than every file: the last one
        assert view.offset_in_queue_by_time("T", 0, START_MS + 99) == 5


def test_nearest_gives_up_with_0_where_a_record_can_not_be_read(tmp_path: Path) -> None:
    root = with_times([0, 10, 20], tmp_path)
    with (root / "commitlog/00000000000000000000").open("r+b") as file:
        file.seek(97)  # the second record, the first that is asked
        file.write(b"\0" * 8)
    with StoreView.open(root) as view:
        assert view.offset_in_queue_by_time("T", 0, START_MS + 20) == 0
        assert view.offset_in_queue_by_time("T", 0, START_MS + 20, Boundary.LOWER) == 2


def test_an_unknown_queue_answers_0(tmp_path: Path) -> None:
    with StoreView.open(with_times([0], tmp_path)) as view:
        for boundary in Boundary:
            assert view.offset_in_queue_by_time("Other", 0, START_MS, boundary) == 0


def test_a_gap_and_fillers_are_passed(tmp_path: Path) -> None:
    """The queue begins with three fillers, and its second file is lost."""
    made = HandMade(ROOMY.with_(mapped_file_size_consume_queue=100), timestamp=START_MS)
    for number in range(3, 15):
        made.put("T", queue_offset=number, step_ms=10)
    made.write(tmp_path)
    sorted((tmp_path / "consumequeue/T/0").iterdir())[1].unlink()
    with StoreView.open(tmp_path) as view:
        answers = {0: 3, 10: 3, 11: 4, 20: 4, 21: 10, 80: 10, 81: 11, 120: 14, 121: 15}
        for time, offset in answers.items():
            found = view.offset_in_queue_by_time("T", 0, START_MS + time, Boundary.LOWER)
            assert found == offset, time


def nearest(times: list[int | None], time: int, *, log_min: int = 0) -> int | None:
    """``halve`` over messages whose records lie at 100, 200 ... and have these store times."""

    def place_of(number: int) -> tuple[int, int]:
        return 100 * number + 100, number + 7

    def time_of(place: int, size: int) -> int | None:
        assert size == place // 100 + 6
        return times[place // 100 - 1]

    return halve(place_of, time_of, 0, len(times) - 1, log_min, time)


@pytest.mark.parametrize(
    ("times", "time", "answer"),
    [
        ([], 5, -1),
        ([1000], 0, 0),
        ([1000], 5000, 0),
        ([0, 5], 0, 0),
        ([0, 5], 1, 0),
        ([10, 20, 30], 20, 1),
        ([10, 20, 30], 24, 1),
        ([10, 20, 30], 25, 1),
        ([10, 20, 30], 26, 2),
        ([10, 20, 30], 15, 0),
        ([10, 20, 30, 40], 10**6, 3),
        ([10, 20, 30, 40], 0, 0),
        ([10, None, 30], 10, None),
        ([10, -1, 30], 10, None),
        ([10, 20, None], 12, 0),
    ],
)
def test_halving_finds_the_nearest(times: list[int | None], time: int, answer: int | None) -> None:
    assert nearest(times, time) == answer


def test_halving_passes_what_lies_before_the_log() -> None:
    times: list[int | None] = [None, None, None, None, 50, 60, 70]
    assert nearest(times, 50, log_min=500) == 4
    assert nearest(times, 0, log_min=500) == 4
    assert nearest(times, 66, log_min=500) == 6
    assert nearest(times, 0, log_min=800) == -1
    assert nearest([None, None, None, 50], 0, log_min=400) == 3
