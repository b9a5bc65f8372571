"""The only consumer of a group: a lock that dies with its process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmqctl.errors import Refused
from storage.format.names import OURS
from storage.locks import ProcessLock


@contextmanager
def only_member(root: Path, group: str) -> Iterator[None]:
    """Be the group's only member for a block; Refused (7) where somebody else is."""
    folder = root / OURS / "groups"
    folder.mkdir(exist_ok=True)
    release = ProcessLock(folder / group).try_acquire()
    if release is None:
        raise Refused(
            f"group {group} has a consumer already, and its queues can not be shared; "
            "stop that one, use another group, or read without committing (--no-commit)"
        )
    try:
        yield
    finally:
        release()
