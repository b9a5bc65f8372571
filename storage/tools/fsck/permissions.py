"""Checking the permissions to write a store's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from storage.files.access import unwritable
from storage.files.ownership import owner

from .findings import Code, Finding, Severity

Emit = Callable[[Finding], None]


def check_permissions(root: Path, emit: Emit) -> None:
    """Emit a finding for each file that the owner, or this user, cannot write."""
    wanted = owner(root.stat())
    for found in unwritable(root):
        fix = (
            f"chown {wanted.uid}:{wanted.gid} and chmod u+rw"
            if found.by_owner
            else "ask the file's owner for the right to write, or run as the store's owner"
        )
        emit(
            Finding(
                Code.FILE_NOT_WRITABLE,
                Severity.WARNING,
                str(found.path.relative_to(root)),
                None,
                found.what(wanted),
                "sends and changes that need it are refused",
                fix,
            )
        )
