"""Commands for which permissions hold, also where the tests run as root."""

from __future__ import annotations

import os
import shutil

import pytest


def without_privileges() -> list[str]:
    """The words before a command that make permissions count for root, too."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv on PATH")
    capabilities = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]
