"""What batches leave whose driver was killed, and what of it a later batch removes, a day later.

A folder for staged rows may be shared with other stores and other programs. So only folders are
removed that are known to be this store's: by the mark in them (``staging.Mark``), or by their names
in the store's own folder. In them only files of a sink are removed.

The marker of a batch with a name (``writeId``) and of a stream stays, as they can come again. A
batch without a name cannot: its marker and its lock are removed, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from analytics.errors import SinkCommitError
from storage.counted import counted

from .marker import BEGUN, UNNAMED, MarkerFile, has_begun, sink_folder
from .staging import Mark, read_mark, remove_parts, remove_staged

logger = logging.getLogger("rmqctl.sink")

_LEFT_AFTER_S: Final = 24 * 3600
_DIGITS: Final = 8
"""At the end of a folder's name, after its write, in earlier versions, which made no mark."""


def remove_left(store: Path, staging: Path) -> None:
    """Remove what killed batches of a store have left in its own folder and in ``staging``.

    What cannot be removed stays: this is called when a batch is stored, and does not fail it.
    """
    before = time.time() - _LEFT_AFTER_S
    own = sink_folder(store)
    for write in _unnamed_writes(own, before):
        with suppress(OSError, SinkCommitError):  # used by another process, or no marker
            _forget(store, write)
    for base in {own, staging}:
        for folder, write in _staging_folders(store, base, own):
            if _last_change(folder) < before and not has_begun(store, write):
                remove_staged(folder)


def _forget(store: Path, write: str) -> None:
    with MarkerFile(store, write) as file:
        marker = file.read()
        if marker is not None:
            if marker.state == BEGUN:
                logger.warning(
                    "%s: a batch without writeId was killed while it was stored: some or all of "
                    "its %s are in the log from offset %d on; its staged rows are removed",
                    *(store, counted(marker.rows, "row"), marker.commitlog_offset),
                )
            remove_parts(marker.parts)
        file.forget()


def _unnamed_writes(own: Path, before: float) -> list[str]:
    """Batches without a name whose marker and lock were last changed before a time."""
    changed: dict[str, float] = {}
    for path in _entries(own):
        if path.name.startswith(UNNAMED) and path.suffix in {".json", ".lock"}:
            last = _last_change(path)
            changed[path.stem] = max(last, changed.get(path.stem, last))
    return [write for write, last in changed.items() if last < before]


def _staging_folders(store: Path, base: Path, own: Path) -> Iterator[tuple[Path, str]]:
    """The folders with staged rows for a store, and their writes."""
    wanted = Mark.of(store, "")
    for folder in _entries(base):
        if folder.is_symlink() or not folder.is_dir():
            continue
        mark = read_mark(folder)
        if mark is not None:
            if mark._replace(write="") == wanted:
                yield folder, mark.write
        elif base == own:
            write, dash, digits = folder.name.rpartition("-")
            if dash and len(digits) == _DIGITS:
                yield folder, write


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _last_change(path: Path) -> float:
    """When a file, or a folder or one of its files, was last changed; now if that is unknown."""
    try:
        files = list(path.iterdir()) if path.is_dir() else []
        return max(one.lstat().st_mtime for one in (path, *files))
    except OSError:
        return time.time()
