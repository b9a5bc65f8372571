"""Compiled forms of the loops that readers spend their time in, where they could be built.

``records`` is None without them: no C compiler when rmqctl was installed, or ``RMQCTL_PURE=1``. The
pure forms stand where they are called, and do the same; a test holds both against each other.
"""

from __future__ import annotations

import os
from types import ModuleType

records: ModuleType | None = None
"""``records.c``; see ``_records.pyi``."""
if not os.environ.get("RMQCTL_PURE"):
    try:
        from . import _records as records
    except ImportError:
        records = None
