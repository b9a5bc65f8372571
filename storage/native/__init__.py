"""Compiled forms of the hottest loops, where they could be built.

Each has a reference in Python, in the module that owns it. That module chooses once, when it is
imported: ``parse_properties = native.form("parse_properties", _parse_properties)``. Tests compare
both. Nothing is compiled where there was no C compiler when rmqctl was installed, or with
``RMQCTL_PURE=1``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

_OFF = frozenset({"", "0", "false", "no", "off"})
Function = TypeVar("Function", bound=Callable[..., Any])


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

references: Final[dict[str, Callable[..., Any]]] = {}
"""The reference of each compiled function that was asked for, by its name."""


def form(name: str, reference: Function) -> Function:
    """Give the compiled form of a function, or its reference where nothing is compiled."""
    references[name] = reference
    found: Function = reference if compiled is None else getattr(compiled, name)
    return found


def nothing(*_: object) -> Any:
    """The reference of a shortcut: None, so that the caller takes its general path."""
    return None
