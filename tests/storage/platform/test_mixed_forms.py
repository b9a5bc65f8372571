"""Processes of both forms share one store: each keeps the other out of its batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.busy_puppet import ROOMY
from tests.support.busy_writer import busy_writers, sample_of, told, wait_for_more
from tests.support.crash import Acknowledged, inspect, missing
from tests.support.linux_forms import needs_linux_forms
from tests.support.samples import new_store, open_store


@pytest.mark.slow
@pytest.mark.crash
@needs_linux_forms
@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.long)])
def test_writers_of_both_forms_that_are_killed_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    root = new_store(tmp_path / "s", ROOMY)
    journals: list[Path] = []
    for first in (0, 4):  # the second time they find what killed ones have left
        monkeypatch.setenv("RMQCTL_POSIX", "1")
        with busy_writers(root, tmp_path, 2, first) as posix:
            monkeypatch.setenv("RMQCTL_POSIX", "")
            with busy_writers(root, tmp_path, 2, first + 2) as linux:
                wait_for_more([*posix, *linux], count)
        journals += [*posix, *linux]
    open_store(root, ROOMY).close()
    acknowledged = [
        Acknowledged(
            sample_of(acked.queue_id, int(acked.id.partition("-")[2])),
            acked.place,
            acked.queue_offset,
        )
        for journal in journals
        for acked in told(journal).acked
    ]
    found = inspect(root, ROOMY)
    assert len(acknowledged) >= 8 * count
    assert found.problems + missing(found, acknowledged) == []
