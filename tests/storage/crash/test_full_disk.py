"""A disk that is really full: errors of calls, never SIGBUS in the middle of a store to a map."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mounting import NEW_MOUNTS, skip_unless_mountable
from tests.support.slim import Slim


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.long)])
def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path, every: int) -> None:
    skip_unless_mountable(tmp_path)
    found = Slim(
        "tests.support.full_disk:fill", inside=NEW_MOUNTS, folder=str(tmp_path), every=every
    ).result()
    assert found["failures"] == []
    assert found["refused_to"] == ["c", "o", "p"], "opening, putting, closing: each met a full disk"
