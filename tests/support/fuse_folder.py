"""An empty folder of a FUSE file system of any name. Runs in ``unshare -rm`` (tests.support.slim).

Its server answers what looking at the folder asks, and nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.config import StoreConfig
from storage.errors import StoreNotWritableError
from storage.files.fs import FileSystem
from storage.platform.mounts import file_system_of
from storage.session import Session

_IN = struct.Struct("<IIQQIIIHH")
_OUT = struct.Struct("<IiQ")
_FORGET, _GETATTR, _INIT, _BATCH_FORGET = 2, 3, 26, 42
_SILENT = (_FORGET, _BATCH_FORGET, 36)


@contextmanager
def fuse_folder(point: Path, kind: str) -> Iterator[None]:
    """Mount an empty folder of a kind such as ``fuse.sshfs``."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0"
    libc = ctypes.CDLL(None, use_errno=True)
    call = [text.encode() for text in ("host:/x", str(point), kind, options)]
    if libc.mount(call[0], call[1], call[2], ctypes.c_ulong(0), call[3]):
        raise OSError(ctypes.get_errno(), "mount")
    threading.Thread(target=_serve, args=(fd,), daemon=True).start()
    try:
        yield
    finally:
        libc.umount2(call[1], 2)


def _serve(fd: int) -> None:
    while True:
        try:
            request = os.read(fd, 1 << 20)
        except OSError:  # unmounted
            return
        _, operation, unique, *_ = _IN.unpack_from(request)
        if operation in _SILENT:
            continue
        answer = {_INIT: _init, _GETATTR: _attributes}.get(operation, bytes)()
        code = 0 if answer else -errno.ENOENT
        os.write(fd, _OUT.pack(_OUT.size + len(answer), code, unique) + answer)


def _init() -> bytes:
    return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0)


def _attributes() -> bytes:
    mode = stat.S_IFDIR | 0o755
    attributes = struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, mode, 2, 0, 0, 0, 4096, 0)
    return struct.pack("<QII", 60, 0, 0) + attributes


def refused_on(folder: str, kind: str) -> list[str]:
    """The kind that is found, and what opening a store there for writing says, "" if nothing."""
    point = Path(folder) / "point"
    point.mkdir()
    with fuse_folder(point, kind):
        found = file_system_of(point / "store")
        try:
            Session(FileSystem(), point, StoreConfig(), gate_timeout_ms=1000)
        except StoreNotWritableError as error:
            return [found, str(error)]
        except OSError:
            pass
    return [found, ""]
