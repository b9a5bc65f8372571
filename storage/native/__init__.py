"""Compiled forms of the hottest loops, where they could be built.

Each has a reference in Python, in the module that owns it. That module chooses once, when it is
imported: ``parse_properties = native.form("parse_properties", _parse_properties)``. Tests compare
both. Nothing is compiled where there was no C compiler when rmqctl was installed, or with
``RMQCTL_PURE=1``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

from storage.platform import LINUX, is_on

_NEEDS_LINUX: Final = frozenset(
    {"pages_ahead", "has_futex_wakers", "wake_one", "sleep_on_word", "notify", "written_ends"}
)
"""Functions that use what other systems do not have (common/kernel.h)."""
Function = TypeVar("Function", bound=Callable[..., Any])


def wants_pure() -> bool:
    """Whether ``RMQCTL_PURE`` is on, by the rules of other environment switches."""
    return is_on("RMQCTL_PURE")


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
    if compiled is None or (name in _NEEDS_LINUX and not LINUX):
        return reference
    found: Function = getattr(compiled, name)
    return found


def nothing(*_: object) -> Any:
    """The reference of a shortcut: None, so that the caller takes its general path."""
    return None
