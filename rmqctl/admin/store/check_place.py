"""What a stopped check has found, and where it was; stored outside of the store, which is only
read."""

import contextlib
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.files.creating import make_folders, replacing

if TYPE_CHECKING:
    from storage.tools.fsck.kept_part import KeptPart


class CheckPlace:
    """The stopped check of one store: a file in a folder of the user."""

    def __init__(self, folder: Path, root: Path) -> None:
        """``folder`` is made by the first ``keep``."""
        name = sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._path = folder / f"{name}.json"

    def read(self) -> "KeptPart | None":
        """What is stored; None if nothing is, or what an older version has stored."""
        from storage.tools.fsck.kept_part import decode_part

        try:
            return decode_part(read_bounded(self._path))
        except (OSError, CorruptFileError):
            return None

    def keep(self, kept: bytes) -> bool:
        """Store ``Check.kept``; False if the user's folder cannot be written."""
        try:
            make_folders(self._path.parent, follow_folder=True)
            with replacing(self._path, follow_folder=True) as file:
                file.write(kept)
        except OSError:
            return False
        return True

    def forget(self) -> None:
        """Delete it, after a complete check."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
