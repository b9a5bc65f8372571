"""Work that several processes of one test run need, and that one of them does."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any


def made_once(folder: Path, name: str, make: Callable[[Path], Any]) -> Any:
    """Give what ``make`` returns; only the first process calls it, others wait and read it.

    ``make`` gets a new folder for files, which stays. What it returns can be pickled. If it raises,
    the next process tries it again.
    """
    result = folder / f"{name}.pickle"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            files = folder / name
            files.mkdir(exist_ok=True)
            made = make(files)
            result.write_bytes(pickle.dumps(made))
            return made
    return pickle.loads(result.read_bytes())
