"""Running a piece of a test as another user, as in a shell of that user."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: no other user can take other users' places"
)


class User(NamedTuple):
    """The user of a piece of a test."""

    uid: int
    gid: int = 0
    umask: int = 0o022
    groups: tuple[int, ...] = ()
    without: tuple[int, ...] = ()
    """Capabilities that a container takes from root."""


OWNER = User(1001, 3000)
ROOT = User(0)
FRIEND = User(1002, 4000, groups=(3000,))
"""A third user, in the group of the store's folder."""
CAP_CHOWN = 0
CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3


def as_user(user: User, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What the function gives in a process of that user; AssertionError with its traceback."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        code = 1
        try:
            _become(user)
            data = pickle.dumps((True, function(*args, **named)))
            code = 0
        except BaseException:  # noqa: BLE001 - the parent raises it
            data = pickle.dumps((False, traceback.format_exc()))
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    done, result = pickle.loads(data)
    assert done, result
    return result


def _become(user: User) -> None:
    os.umask(user.umask)
    for number in user.without:
        _drop(number)
    if os.geteuid() != user.uid or os.getegid() != user.gid:
        os.setgroups(user.groups)
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)


def _drop(capability: int) -> None:
    """Take a capability from this process (capset of version 3)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert not libc.capget(head, data)
    for at in (0, 1, 2):  # effective, permitted, inheritable
        data[at] &= ~(1 << capability) & 0xFFFFFFFF
    assert not libc.capset(head, data), os.strerror(ctypes.get_errno())


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="rmqctl-users-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def tree(root: Path) -> dict[str, tuple[int, int, str, int]]:
    """Owner, group, mode and length of everything in a folder, by its path."""
    found = {}
    for path in [root, *root.rglob("*")]:
        info = path.lstat()
        place = path.relative_to(root).as_posix()
        found[place] = (info.st_uid, info.st_gid, f"{info.st_mode:o}", info.st_size)
    return found
