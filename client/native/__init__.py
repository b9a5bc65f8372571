"""Compiled forms of the client's loops over pulled messages; see storage.native.

``compiled`` is None where they could not be built, and with ``RMQCTL_PURE=1``.
"""

from __future__ import annotations

from types import ModuleType

from storage.native import wants_pure

compiled: ModuleType | None = None
"""See ``_compiled.pyi``."""
if not wants_pure():
    try:
        from . import _compiled as compiled
    except ImportError:
        compiled = None
