"""A store that is damaged and restored, again and again."""

import os
import shutil
from pathlib import Path
from typing import Final, NamedTuple

_LARGEST: Final = 1 << 24


class Kept(NamedTuple):
    """A file as it was."""

    data: bytes
    mtime_ns: int
    mode: int


class KeptStore:
    """The bytes of all files of a store; larger files than 16 MiB are not put back."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.files = {path: _keep(path) for path in root.rglob("*") if path.is_file()}
        self._folders = {path for path in root.rglob("*") if path.is_dir()}

    def put_back(self) -> None:
        """Have the store as it was: in place, so that its page stays that of this store."""
        for path in sorted(self._root.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                if path not in self._folders:
                    shutil.rmtree(path, ignore_errors=True)
            elif path not in self.files:
                path.unlink()
        for folder in sorted(self._folders):
            folder.mkdir(exist_ok=True)
        for path, kept in self.files.items():
            try:
                right = path.is_file() and not path.is_symlink() and _keep(path) == kept
            except OSError:
                right = False
            if right:
                continue
            if not path.is_file() or path.is_symlink():
                path.unlink(missing_ok=True)
            with path.open("r+b" if path.exists() else "xb") as file:
                file.write(kept.data)
                file.truncate()
            os.utime(path, ns=(kept.mtime_ns, kept.mtime_ns))


def _keep(path: Path) -> Kept:
    status = path.stat()
    if status.st_size > _LARGEST:
        return Kept(b"", 0, 0)
    return Kept(path.read_bytes(), status.st_mtime_ns, status.st_mode)
