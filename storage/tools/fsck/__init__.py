"""Checking a store (``rmqctl store fsck``): findings as values, nothing changed.

Needs NumPy, so no other package of storage imports this one.

See docs/internals/fsck-repair.md.
"""

from __future__ import annotations

from .findings import Checked, Code, Finding, Report, Severity
from .fsck import Part, fsck

__all__ = ["Checked", "Code", "Finding", "Part", "Report", "Severity", "fsck"]
