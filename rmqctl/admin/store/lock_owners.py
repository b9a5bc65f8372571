"""The processes that have a store open for writing."""

from pathlib import Path

from rmqctl.errors import Refused
from storage.coordination.lock_owners import LockOwners, find_holders


def writers(root: Path) -> LockOwners:
    """The rmqctl processes that have a store open for writing, and whether a Java broker has it.

    No lock is taken. Processes of other users and other machines may be missing.
    """
    return find_holders(root)


def refuse_writers(root: Path) -> None:
    """Refused if an rmqctl process has the store open for writing."""
    pids = ", ".join(map(str, find_holders(root).writers))
    if pids:
        raise Refused(
            f"process {pids} has {root} open for writing; "
            "stop it first ('rmqctl broker status' shows it)"
        )
