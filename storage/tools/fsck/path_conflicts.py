"""Checking the places of a store's own files: other objects there keep writers out.

Readers skip what is no file, or no file of the log; a process that opens the store for writing
fails. ``store repair`` moves it into the quarantine.
"""

from __future__ import annotations

from collections.abc import Callable
from os.path import lexists
from pathlib import Path
from typing import Final

from storage.format.names import ABORT, CHECKPOINT, LOCK, OURS

from .findings import Code, Finding, Severity

Emit = Callable[[Finding], None]

BY_HAND: Final = "move it away"
"""The remedy where repair itself needs the place."""
_FIX: Final = "rmqctl store repair, or move it away"
_KEPT_OUT: Final = "the store cannot be opened for writing"


def check_places(root: Path, emit: Emit) -> None:
    """Check the files and folders in the store's root that a writer needs."""
    for name in (ABORT, CHECKPOINT, LOCK):
        path = root / name
        if is_blocked(path):
            emit(in_the_way(root, path, fix=BY_HAND if name == LOCK else _FIX))
    ours = root / OURS
    if is_blocked(ours, folder=True):
        emit(in_the_way(root, ours, folder=True, fix=BY_HAND))


def is_blocked(path: Path, *, folder: bool = False) -> bool:
    """Whether something else than a file (or a ``folder``) has this name, for instance a dangling
    link; a file that was deleted meanwhile does not count."""
    is_right = path.is_dir() if folder else path.is_file()
    return not is_right and lexists(path)


def in_the_way(
    root: Path,
    path: Path,
    *,
    what: str = "",
    effect: str = _KEPT_OUT,
    folder: bool = False,
    fix: str = _FIX,
) -> Finding:
    """Report an object in the place of a file (or a ``folder``) of the store."""
    wanted = "a folder" if folder else "a file"
    if not what and path.is_symlink() and not path.exists():
        what = f"a link to {path.readlink()}, which is not there, in the place of {wanted}"
    elif not what:
        kind = "a file" if path.is_file() else "a folder" if path.is_dir() else "no file"
        what = f"{kind} in the place of {wanted} of the store"
    name = str(path.relative_to(root))
    return Finding(Code.FOREIGN_FILE, Severity.ERROR, name, None, what, effect, fix)
