"""Tests that are about a form of Linux, or about a form for any POSIX system."""

from __future__ import annotations

import pytest

from storage.platform import LINUX

needs_linux_forms = pytest.mark.skipif(
    not LINUX, reason="needs the forms of Linux: RMQCTL_POSIX is set"
)
