"""Where an interrupted check of a store stopped; kept outside of the store, which is only read."""

import contextlib
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path


class FsckPlace:
    """The place for one store: a small file in ``$XDG_STATE_HOME/rmqctl/fsck``."""

    def __init__(self, environ: Mapping[str, str], root: Path) -> None:
        home = environ.get("XDG_STATE_HOME")
        folder = Path(home) if home else Path("~/.local/state").expanduser()
        name = sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._path = folder / "rmqctl" / "fsck" / f"{name}.json"

    def read(self) -> int | None:
        """The commit log offset that was reached; None if nothing was kept."""
        try:
            return int(json.loads(self._path.read_bytes())["log_offset"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, log_offset: int) -> bool:
        """Keep an offset; False where the user's folder can not be written."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps({"log_offset": log_offset}) + "\n")
        except OSError:
            return False
        return True

    def forget(self) -> None:
        """A check came to its end: there is nothing to go on with."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
