"""Versions of the files of rmqctl's own: a program refuses a newer one, and names both."""

from __future__ import annotations

from typing import Final

FORMATS: Final = {
    "store.json": 1,
    "shared": 4,
    "offsets.log": 2,  # 1 was a file of one table, offsets.json
    "settings.json": 1,
    "deleted.json": 1,
    "handled.json": 1,
    "delays-ended.json": 1,
    "snapshot": 1,
}
"""Version by file below ``<store>/rmqctl/``; ``snapshot`` is the manifest of ``store snapshot``."""
