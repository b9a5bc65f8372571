"""Compiled forms of the hottest loops, where they could be built.

``compiled`` is None without them: no C compiler when rmqctl was installed, or ``RMQCTL_PURE=1``.
The references in Python are in the modules that call them, and do the same; tests compare both.
"""

from __future__ import annotations

import os
from types import ModuleType

_OFF = frozenset({"", "0", "false", "no", "off"})


def wants_pure() -> bool:
    """Whether ``RMQCTL_PURE`` is on, by the rules of other environment switches."""
    return os.environ.get("RMQCTL_PURE", "").strip().lower() not in _OFF


compiled: ModuleType | None = None
"""See ``_compiled.pyi``."""
if not wants_pure():
    try:
        from . import _compiled as compiled
    except ImportError:
        compiled = None
