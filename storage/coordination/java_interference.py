"""Noticing and undoing what Java brokers did that failed to start beside this process.

What they do, and how files are protected: ``storage.coordination.kept_links``. Such a broker first
deletes our index file, so the missing name shows an attempt. From then on, until the last writer
has left or the shared state is made anew, all files are checked every now and then.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.format.names import ABORT, INDEX, OURS, is_index_file_name

from .kept_links import KEPT, KeptLinks, exists
from .shared_state import Word

if TYPE_CHECKING:
    from storage.files.fs import FileSystem

    from .shared_state import SharedState


class JavaInterference:
    """One process's view of such attempts. All methods but ``attempted`` need the write lock."""

    def __init__(self, fs: FileSystem, root: Path, shared: SharedState) -> None:
        self._fs = fs
        self._root = root
        self._shared = shared
        self._names = KeptLinks(fs, root)
        fs.make_dirs(root / OURS / KEPT)

    def attempted(self) -> bool:
        """Whether there was an attempt since the first writer came. Checks one file name."""
        words = self._shared.words
        newest = words[Word.INDEX_FILE]
        return bool(words[Word.RIVALS] or (newest and not exists(self._index_file(newest))))

    def come_in(self, *, first: bool) -> bool:
        """Put the files in order and keep the index file; False if they cannot be put in order.

        Then the shared state must not be trusted.
        """
        words = self._shared.words
        newest = words[Word.INDEX_FILE]
        if self.attempted():
            self.undo()
        file = self._index_file(newest)
        if newest and not exists(file):
            return False
        if first:  # what is here now stays, kept or not
            words[Word.INDEX_BASE] = newest
        if newest and not self._names.keeps(file):
            self._names.keep(file, file)
        return True

    def undo(self) -> None:
        """Give files their names back, and take away the broker's index file."""
        restored = self._names.restore()
        removed = self._remove_strange_index_files()
        if restored or removed:
            self._shared.words[Word.RIVALS] = 1
            self._fs.touch(self._root / ABORT)  # which it deletes if it found an empty log

    def forget(self) -> None:
        """Keep nothing any more: the store is closed, or made anew by recovery.

        The index files are ours from now on, without a kept link, and the attempt is over: first,
        as a process that dies in here leaves some of the links.
        """
        words = self._shared.words
        words[Word.INDEX_BASE] = words[Word.INDEX_FILE]
        words[Word.RIVALS] = 0
        self._names.forget_all()

    def _remove_strange_index_files(self) -> bool:
        """Delete index files that no rmqctl process made."""
        base = self._shared.words[Word.INDEX_BASE]
        removed = False
        for path in (self._root / INDEX).glob("[0-9]*"):
            if not is_index_file_name(path.name) or int(path.name) <= base:
                continue
            if not self._names.keeps(path):
                self._fs.unlink(path)
                removed = True
        if removed:
            self._fs.sync_dir(self._root / INDEX)
        return removed

    def _index_file(self, name: int) -> Path:
        return self._root / INDEX / f"{name:017d}"
