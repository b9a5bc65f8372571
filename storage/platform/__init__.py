"""The seams to the operating system: each call that not every POSIX system has, a module a seam.

Each seam has the form of Linux and a reference form for any POSIX system, and chooses once, when it
is imported. ``RMQCTL_POSIX=1`` hides all forms of Linux, which is how the reference forms are
tested. No other room names such a call; ``tests/checks/linux_names.py`` holds that.
docs/platforms.md has the table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

_OFF: Final = frozenset({"", "0", "false", "no", "off"})
Function = TypeVar("Function", bound=Callable[..., Any])


def is_on(variable: str) -> bool:
    """Whether a switch of the environment is on: set, and not to 0, false, no or off."""
    return os.environ.get(variable, "").strip().lower() not in _OFF


LINUX: Final[bool] = sys.platform == "linux" and not is_on("RMQCTL_POSIX")
"""Whether the forms of Linux are used."""


def form(linux: Function, posix: Function) -> Function:
    """Give the form of a function that is used here."""
    return linux if LINUX else posix
