"""The compiled module for tests that hold it against pure forms, also if RMQCTL_PURE hides it."""

from __future__ import annotations

import shutil
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

_NAME = "storage.native._compiled"
_IS_THERE = find_spec(_NAME) is not None

compiled: Any = import_module(_NAME) if _IS_THERE else None
"""None where there is no compiler; what uses it is marked with ``needs_compiled``."""
needs_compiled = pytest.mark.skipif(
    not _IS_THERE and shutil.which("cc") is None, reason="needs cc on PATH"
)
