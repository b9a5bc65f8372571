"""Names of files: whether a file system tells those apart that differ only in case (Linux's usual
ones do, macOS's usual one does not)."""

from __future__ import annotations

from pathlib import Path


def folds_case(path: Path) -> bool:
    """Whether an existing file or folder has its name in another case, too."""
    try:
        return path.samefile(path.with_name(path.name.swapcase()))
    except OSError:
        return False
