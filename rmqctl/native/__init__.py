"""Compiled forms of the command line's loops over rows; see storage.native."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from storage.native import Function, wants_pure

compiled: ModuleType | None = None
"""See ``_compiled.pyi``."""
if not wants_pure():
    try:
        from . import _compiled as compiled
    except ImportError:
        compiled = None

references: Final[dict[str, Any]] = {}
"""See storage.native.references."""


def form(name: str, reference: Function) -> Function:
    """Give the compiled form of a function, or its reference; see storage.native.form."""
    references[name] = reference
    found: Function = reference if compiled is None else getattr(compiled, name)
    return found
