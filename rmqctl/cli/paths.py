"""Paths as they are typed: ``~`` is a home folder, where there is one."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NO_HOME: Final = Path("/nonexistent")
"""The home of a user who has none: a container may run under any number, without HOME."""


def expanded(text: str | os.PathLike[str]) -> Path:
    """The path with ``~`` and ``~user`` replaced; as in a shell they stay where the user or the
    home is unknown. Raises nothing."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises there


def working_folder() -> Path | None:
    """The working folder; None if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def base_folder(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """A folder of the XDG rules: that of the variable, else ``default`` below the home folder.

    Without a home it is a folder that does not exist: nothing is read, and a file cannot be made.
    """
    if folder := environ.get(variable):
        return Path(folder)
    home = expanded("~")
    return (home if home.is_absolute() else _NO_HOME) / default
