"""Where a search finds that store times go back, all minutes of the store are exact."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from analytics.kernels.edges import DisorderError, MinuteEdges, UnreadableRecordError
from analytics.report import scan as scanning
from tests.analytics.report.test_lag_report import counts, report, write_offsets
from tests.support.hand_made import TINY, HandMade
from tests.support.lag_oracle import counted

SAID = "broker-0: store times go back in the log: the time of every unread message was read"


@pytest.fixture(autouse=True)
def by_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of store times is relied on where a store is as small as these, too."""
    monkeypatch.setattr(scanning, "EACH_TIME_UP_TO", -1)
    monkeypatch.setattr(scanning, "EACH_TAG_UP_TO", -1)


def with_steps_back(root: Path, seed: int) -> Path:
    """A store of three queues in whose log a few records are older than those before."""
    chance = Random(seed)
    store = HandMade(TINY)
    for _ in range(60):
        step_ms = -150_000 if chance.random() < 0.05 else 30_000
        store.put("T", chance.randrange(3), step_ms=step_ms)
    root.mkdir()
    store.write(root)
    write_offsets(root, {("g", "T", queue_id): 0 for queue_id in range(3)})
    return root


def test_no_queue_relies_on_an_order_that_another_one_has_refuted(tmp_path: Path) -> None:
    warned = 0
    for seed in range(20):
        root = with_steps_back(tmp_path / str(seed), seed)
        found = report(root)
        if SAID in found.warnings:
            warned += 1
            minutes = counts(found, "minutes", "minute_timestamp")
            assert minutes == counted(root)["minutes"], seed
    assert warned > 5


def test_a_record_that_cannot_be_read_says_nothing_of_the_order(tmp_path: Path) -> None:
    store = HandMade(TINY)
    for _ in range(30):
        store.put("T", 0, step_ms=25_000)
    bad = store.messages[15].commitlog_offset
    store.log[bad + 4 : bad + 8] = bytes(4)  # its magic
    store.write(tmp_path)
    write_offsets(tmp_path, {("g", "T", 0): 0})
    found = report(tmp_path)
    assert not [one for one in found.warnings if "store times" in one]
    assert counts(found, "minutes", "minute_timestamp") == counted(tmp_path)["minutes"]


def places(edges: MinuteEdges, stored: dict[int, int]) -> list[int]:
    """Positions of edges among records with these store times by log offset."""
    offsets = np.array(list(stored), np.int64)

    def times_of(at: NDArray[np.int64], _: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([stored[offset] for offset in at.tolist()], np.int64)

    found: list[int] = edges.positions(offsets, offsets, times_of).tolist()
    return found


def test_what_contradicts_the_order_is_not_learnt() -> None:
    edges = MinuteEdges(np.array([100, 200], np.int64))
    assert places(edges, {10: 50, 20: 150, 30: 250}) == [1, 2]
    with pytest.raises(DisorderError):
        places(edges, {15: 250, 25: 260})
    assert places(edges, {12: 60, 17: 120, 28: 190}) == [1, 3]
    with pytest.raises(UnreadableRecordError):
        places(edges, {13: -1, 29: 240})


def test_an_end_that_is_older_than_the_beginning_is_a_step_back(tmp_path: Path) -> None:
    store = HandMade(TINY)
    for step_ms in (0, 30_000, -200_000):
        store.put("T", 0, step_ms=step_ms)
    store.write(tmp_path)
    write_offsets(tmp_path, {("g", "T", 0): 0})
    found = report(tmp_path)
    assert found.warnings == [SAID]
    assert counts(found, "minutes", "minute_timestamp") == counted(tmp_path)["minutes"]
