"""A store at an address as a folder of this machine, whose files are filled on demand.

The folder has the names, lengths and times of the store's files. The small ones (settings,
progress) are fetched whole. Those of the log and the queues are placeholders without content:
where a reader maps one, it gets memory (``pages.PagedFile``) instead, into which ranges are
fetched: before, if it is known what is read, and else as ``steady`` says. So all readers of stores
work on it as they are.

The folder has no index of keys, and no shared state: a store there is one that no process has open.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from analytics.errors import ObjectStoreError
from storage.files.read_files import MAP_MAKERS
from storage.format.names import (
    ABORT,
    COMMITLOG,
    CONFIG,
    INDEX,
    OURS,
    REBUILT_FOLDER,
    SINK_FOLDER,
    SNAPSHOT_MANIFEST,
)

from .address import folder_of
from .objects import ObjectInfo, Objects, pieces
from .pages import BLOCK, PAGE, PagedFile, shows_pages

if TYPE_CHECKING:
    import mmap

    from numpy.typing import NDArray

logger = logging.getLogger("rmqctl.datasource")

MOST_BYTES: Final = 1 << 30
"""Bytes of a store's log and queues that are in memory at the same time, at most."""
_MOST_SMALL: Final = 128 << 20
"""Bytes of a file that is fetched whole; those of the settings are smaller."""
_LEFT_OUT: Final = frozenset(
    {"shared", "queues", "bells", "locks", "kept", "set-aside", "quarantine", "journal", "redrives"}
) | {SINK_FOLDER, REBUILT_FOLDER}
"""What rmqctl keeps for its processes, or for commands that change a store."""

Asked = tuple[str, "NDArray[np.int64]", "NDArray[np.int64]"]
"""The name of a file, and the begins and ends of ranges of it."""


class StoreCopy:
    """A context manager: the folder goes with it. For one thread, and those that it starts."""

    def __init__(
        self,
        objects: Objects,
        infos: Mapping[str, ObjectInfo],
        patches: Mapping[str, Sequence[tuple[int, bytes]]] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Of some objects of a store. ``patches``: bytes and their positions, by file, that
        replace what is stored, and may lie past its end. Raises ObjectStoreError."""
        if not shows_pages():
            raise ObjectStoreError(
                f"{objects.shown}: this system (no Linux, a sandbox, or an emulation) does not say "
                "which pages of memory were read, which reading from an object store needs; copy "
                "the store, or a snapshot of it, into a folder"
            )
        self.shown: Final = objects.shown
        self._objects = objects
        self.infos: Final = dict(infos)
        self._patches = dict(patches or {})
        self._most_bytes = most_bytes
        self._paged: dict[str, PagedFile] = {}
        self._base = tempfile.mkdtemp(prefix="rmqctl-")
        self.root: Final = Path(self._base, folder_of(objects.shown).strip("/"))
        self.removed: Final[set[str]] = set()
        """Files that are not those of ``infos`` any more."""
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        MAP_MAKERS[f"{self.root}/"] = self._mapped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder, and give the memory back."""
        MAP_MAKERS.pop(f"{self.root}/", None)
        self._paged.clear()
        shutil.rmtree(self._base, ignore_errors=True)

    # -- the folder ---------------------------------------------------------------------------

    def _make(self) -> None:
        self.root.mkdir(parents=True)
        small: dict[str, ObjectInfo] = {}
        for name, info in self.infos.items():
            parts = name.split("/")
            if not all(parts) or {".", ".."}.intersection(parts):
                continue
            path = self.root / name
            if info.is_folder and parts[0] != OURS:
                path.mkdir(parents=True, exist_ok=True)
            if info.is_folder or _is_left_out(parts):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if _is_small(parts) and info.size <= _MOST_SMALL:
                small[name] = info
                continue
            self._place(path, max(info.size, self._patched_end(name)), info.modified_ns)
        for name in self._patches.keys() - self.infos.keys():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            self._place(self.root / name, self._patched_end(name), 0)
        for name, data in self._objects.whole(small).items():
            (self.root / name).write_bytes(data)
            _set_time(self.root / name, small[name].modified_ns)

    def _place(self, path: Path, size: int, modified_ns: int) -> None:
        path.touch()
        os.truncate(path, size)
        _set_time(path, modified_ns)

    def _patched_end(self, name: str) -> int:
        return max((at + len(data) for at, data in self._patches.get(name, ())), default=0)

    def _mapped(self, path: str, length: int) -> mmap.mmap:
        """The memory of a file, whose first ``length`` bytes a reader maps."""
        name = path.removeprefix(f"{self.root}/")
        if len(self._file(name).map) != length:  # a file that is longer than the others
            self._paged[name] = PagedFile(length, length, self._patches.get(name, ()), PAGE)
        return self._file(name).map

    def _file(self, name: str) -> PagedFile:
        found = self._paged.get(name)
        if found is None:
            stored = self.infos[name].size if name in self.infos else 0
            patches = self._patches.get(name, ())
            size = max(stored, self._patched_end(name))
            block = BLOCK if name.startswith(COMMITLOG) else PAGE  # units are looked at singly
            found = self._paged[name] = PagedFile(size, stored, patches, block)
        return found

    def has(self, name: str) -> bool:
        """Whether the store has a file that is not removed."""
        return name in self.infos and name not in self.removed

    # -- reading ------------------------------------------------------------------------------

    def fetch(self, asked: Iterable[Asked]) -> None:
        """Fetch what is not there yet of some ranges. Raises ObjectStoreError."""
        self._fetch(
            [
                (name, *self._file(name).lacking(starts, ends))
                for name, starts, ends in asked
                if self.has(name)
            ]
        )

    def lacking_bytes(self, asked: Iterable[Asked]) -> int:
        """How many bytes ``fetch`` would fetch."""
        found = 0
        for name, starts, ends in asked:
            if self.has(name):
                lacking = self._file(name).lacking(starts, ends)
                found += int((lacking[1] - lacking[0]).sum())
        return found

    def fetch_one(self, name: str, start: int, end: int) -> memoryview:
        """The bytes [start, end) of a file, which the calling thread fetches if they are not
        there."""
        file = self._file(name)
        lacking = file.lacking(np.array([start]), np.array([end]))
        for at, stop in zip(*(side.tolist() for side in lacking), strict=True):
            file.fill(at, self._objects.read(name, at, stop))
        return memoryview(file.map)[start:end]

    def fetch_missing(self) -> bool:
        """Fetch what was looked at and was not there; whether there was any."""
        asked = [(name, *file.missing()) for name, file in self._paged.items()]
        some = [one for one in asked if len(one[1])]
        self._fetch(some)
        return bool(some)

    def _fetch(self, asked: Sequence[Asked]) -> None:
        more = sum(int((ends - starts).sum()) for _, starts, ends in asked)
        held = sum(file.held for file in self._paged.values()) if more else 0
        if held + more > self._most_bytes:
            raise ObjectStoreError(
                f"{self.shown}: {(held + more) >> 20} MiB of the log and the queues would "
                f"be read at once, more than {self._most_bytes >> 20}; name fewer topics or "
                "groups, or copy the store into a folder"
            )

        def job(name: str, start: int, end: int) -> None:
            self._paged[name].fill(start, self._objects.read(name, start, end))

        self._objects.each(
            [
                partial(job, name, *piece)
                for name, starts, ends in asked
                for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
                for piece in pieces(start, end)
            ]
        )

    def drop(self) -> None:
        """Give back the memory of all files: what is read next is fetched anew."""
        for file in self._paged.values():
            file.drop()

    # -- objects that change ------------------------------------------------------------------

    def changed(self, names: Iterable[str] | None = None) -> list[str]:
        """The files that are gone, or are others than those of the list; None: all that were
        read."""
        known = {name: self.infos[name] for name in names or self._paged if self.has(name)}
        now = self._objects.now(known)
        return [name for name, info in known.items() if not info.is_still(now[name])]

    def check_unchanged(self) -> None:
        """Raise ObjectStoreError if a file that was read is gone, or is another one by now."""
        for name in self.changed():
            raise ObjectStoreError(
                f"{self.shown}/{name}: it was deleted or replaced while it was read; only "
                "snapshots, which do not change, are read from there"
            )

    def remove(self, name: str) -> None:
        """Take a file out of the folder, as if it had been deleted."""
        logger.warning("%s/%s: it was deleted or replaced since it was listed", self.shown, name)
        self.removed.add(name)
        self._paged.pop(name, None)
        self._objects.forget(name)
        (self.root / name).unlink(missing_ok=True)

    # -- what is to be said of it -------------------------------------------------------------

    def doubt(self) -> str | None:
        """A sentence about a store that was not closed; None for others, and for snapshots."""
        if ABORT not in self.infos or SNAPSHOT_MANIFEST in self.infos:
            return None
        return (
            f"{self.shown}: the store was open when it was copied there (its file 'abort' "
            "is there): it is read as after a crash at that moment, and files that were copied "
            "later than others may lack messages; 'rmqctl store snapshot' makes a whole copy"
        )

    def renamed(self, text: str) -> str:
        """A text about the folder as one about the address."""
        return text.replace(str(self.root), self.shown)


def _is_left_out(parts: Sequence[str]) -> bool:
    if parts[0] == OURS:
        return len(parts) == 1 or parts[1] in _LEFT_OUT or parts[-1].endswith((".lock", ".tmp"))
    return parts[0] == INDEX


def _is_small(parts: Sequence[str]) -> bool:
    """Whether a file is fetched whole; of other folders only the names count."""
    return len(parts) == 1 or parts[0] in (CONFIG, OURS)


def _set_time(path: Path, modified_ns: int) -> None:
    os.utime(path, ns=(modified_ns, modified_ns))
