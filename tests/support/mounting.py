"""File systems of a test's own: commands that run where mounting is allowed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NEW_MOUNTS = ("unshare", "-rm")


def skip_unless_mountable(folder: Path) -> None:
    """Skip where no file system can be mounted in a namespace of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare on PATH")
    probe = [*NEW_MOUNTS, "mount", "-t", "tmpfs", "none", str(folder)]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("needs a file system of its own, and mounting one is not allowed here")
