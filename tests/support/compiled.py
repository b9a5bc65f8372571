"""The compiled modules for tests against pure forms, also where RMQCTL_PURE hides them."""

from __future__ import annotations

import shutil
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

_NAME = "storage.native._compiled"
_OF_CLIENT = "client.native._compiled"
_IS_THERE = find_spec(_NAME) is not None and find_spec(_OF_CLIENT) is not None

compiled: Any = import_module(_NAME) if _IS_THERE else None
"""None where there is no compiler; what uses it is marked with ``needs_compiled``."""
compiled_client: Any = import_module(_OF_CLIENT) if _IS_THERE else None
"""The same of the client's."""
needs_compiled = pytest.mark.skipif(
    not _IS_THERE and shutil.which("cc") is None, reason="needs cc on PATH"
)
