"""Clocks and file times that no store can hold."""

from __future__ import annotations

import os

import pytest

from tests.support.cli import run

_SECOND = 1_000_000_000
YEAR_2300 = 10_413_792_000 * _SECOND


def broken(now_ns: int):
    def time_ns() -> int:
        if now_ns >= 1 << 63:
            raise OverflowError("timestamp too large to convert to C _PyTime_t")  # as Python does
        return now_ns

    return time_ns


@pytest.mark.parametrize("now_ns", [YEAR_2300, -_SECOND])
def test_a_clock_that_is_out_of_range_is_named(store, monkeypatch, now_ns):
    monkeypatch.setattr("time.time_ns", broken(now_ns))
    result = run("topic", "list")
    assert (result.code, result.out) == (1, "")
    assert "the clock of this machine shows" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("at_ns", [YEAR_2300, -YEAR_2300 // 100])
def test_files_of_any_time_are_read_and_written(store, at_ns):
    assert run("produce", "t", stdin=b"a\n").code == 0
    for path in [store, *store.rglob("*")]:
        os.utime(path, ns=(at_ns, at_ns))
    assert run("produce", "t", stdin=b"b\n").code == 0
    result = run("consume", "t", "-e")
    assert (result.code, sorted(result.lines), result.err) == (0, ["a", "b"], "")
    assert run("consume", "t", "-g", "g", "-e").code == 0
    assert run("store", "fsck").code == 0
