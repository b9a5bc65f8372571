"""The position of a stopped check; stored outside of the store, which is only read."""

import contextlib
import json
from hashlib import sha256
from pathlib import Path
from typing import Final

from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.files.creating import make_folders, replacing
from storage.format.shapes import check, members, whole
from storage.format.strict_json import loads_strict

_PLACE: Final = members({"log_offset": whole(0)})


class CheckPlace:
    """The position for one store: a small file in a folder of the user."""

    def __init__(self, folder: Path, root: Path) -> None:
        """``folder`` is made by the first ``keep``."""
        name = sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._path = folder / f"{name}.json"

    def read(self) -> int | None:
        """The commit log offset that was reached; None if none is stored."""
        try:
            place = loads_strict(read_bounded(self._path))
            check(place, _PLACE)
        except (OSError, ValueError, CorruptFileError):
            return None
        offset: int = place["log_offset"]
        return offset

    def keep(self, log_offset: int) -> bool:
        """Store an offset; False if the user's folder cannot be written."""
        try:
            make_folders(self._path.parent, follow_folder=True)
            with replacing(self._path, follow_folder=True) as file:
                file.write(json.dumps({"log_offset": log_offset}).encode() + b"\n")
        except OSError:
            return False
        return True

    def forget(self) -> None:
        """Delete the position, after a complete check."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
