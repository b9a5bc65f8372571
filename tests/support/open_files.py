"""Which files this process has open."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

OPEN_FILES = Path("/proc/self/fd")


def open_paths(below: Path) -> list[str]:
    """The names of all descriptors' files in a folder, those of deleted ones with " (deleted)"."""
    found = []
    for descriptor in OPEN_FILES.iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            name = str(descriptor.readlink())
            if name.startswith(f"{below}/"):
                found.append(name)
    return found
