"""A disk that is really full: errors of calls, never SIGBUS in the middle of a store to a map."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.slim import Slim

NEW_MOUNTS = ("unshare", "-rm")


@pytest.mark.crash
@pytest.mark.slow
def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    skip_unless_mountable(tmp_path)
    found = Slim("tests.support.full_disk:fill", inside=NEW_MOUNTS, folder=str(tmp_path)).result()
    assert found["failures"] == []
    assert found["refused_to"] == ["c", "o", "p"], "opening, putting, closing: each met a full disk"


def skip_unless_mountable(folder: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare on PATH")
    probe = [*NEW_MOUNTS, "mount", "-t", "tmpfs", "none", str(folder)]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("needs a file system of its own, and mounting one is not allowed here")
