"""Files that the console writes: never inside a store, and none is replaced by accident."""

import os
from collections.abc import Iterable
from pathlib import Path

from rmqctl.errors import Refused, UsageProblem


def check_outside(path: Path, stores: Iterable[Path]) -> None:
    """Refused for a path inside of a store."""
    from rmqctl.admin.store_folder import is_a_store_above

    for folder in Path(os.path.realpath(path)).parents:
        if any(_same(folder, store) for store in stores) or is_a_store_above(folder):
            raise Refused(f"{path} is inside the store {folder}; name a file outside of it")


def check_file(path: Path, stores: Iterable[Path], replaced_by: str | None) -> None:
    """Raise Refused or UsageProblem for a file that must not be written.

    ``replaced_by`` says how a file that is there is replaced; None: it may be.
    """
    check_outside(path, stores)
    real = Path(os.path.realpath(path))
    if not real.parent.is_dir():
        raise UsageProblem(f"there is no folder {real.parent}")
    if not os.path.lexists(real):
        return
    if not real.is_file():
        raise UsageProblem(f"{path} is not a file")
    if replaced_by is not None:
        raise Refused(f"{path} exists; {replaced_by} replaces it")


def _same(folder: Path, store: Path) -> bool:
    try:
        return folder.samefile(store)
    except OSError:
        return False
