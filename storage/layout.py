"""Making a store, and the small files that say what rmqctl made.

``rmqctl/created``      rmqctl made this store: retention and delayed delivery may run by the way
``rmqctl/store.json``   lengths of its files, for the next opener
"""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .config import FIXED_FIELDS, StoreConfig
from .errors import CorruptFileError, StoreVersionError
from .format.names import COMMITLOG, CONFIG, CONSUMEQUEUE, INDEX, LOCK, OURS

if TYPE_CHECKING:
    from .files.fs import FileSystem

CREATED: Final = "created"
STORE_FILE: Final = "store.json"
STORE_FILE_VERSION: Final = 1
_LOCK_CONTENT: Final = b"lock"


def create_store(fs: FileSystem, root: Path, config: StoreConfig) -> None:
    """Make an empty store in ``root``: folders, Java's lock file, and our record of the sizes.

    Files are made with the first message. Everything is on the device when this returns. Raises
    OSError, FileExistsError too for a folder that is not empty.
    """
    fs.make_dirs(root)
    if any(root.iterdir()):
        raise FileExistsError(errno.EEXIST, "the folder is not empty")
    for name in (COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG, OURS):
        fs.make_dirs(root / name)
    write_sizes(fs, root, config)
    _write(fs, root / LOCK, _LOCK_CONTENT)
    _write(fs, root / OURS / CREATED, b"")
    fs.sync_dir(root / OURS)
    fs.sync_dir(root)
    fs.sync_dir(root.parent)


def was_created_here(root: Path) -> bool:
    """Whether rmqctl made this store (then old files go and delayed messages are delivered)."""
    return (root / OURS / CREATED).exists()


def write_sizes(fs: FileSystem, root: Path, config: StoreConfig) -> None:
    """Record the lengths of the store's files."""
    data: dict[str, Any] = {"version": STORE_FILE_VERSION}
    data |= {name: getattr(config, name) for name in FIXED_FIELDS}
    _write(fs, root / OURS / STORE_FILE, json.dumps(data, indent=1).encode() + b"\n")


def read_sizes(root: Path) -> dict[str, Any] | None:
    """The recorded lengths by StoreConfig's names, None if there is no record.

    Raises CorruptFileError, and StoreVersionError for a record of a newer rmqctl.
    """
    path = root / OURS / STORE_FILE
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        data = json.loads(text)
        version = int(data.pop("version"))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        remedy = "remove it to have the sizes taken from the store's own files"
        reason = f"it is not the record of sizes ({error}; {remedy})"
        raise CorruptFileError(path, 0, reason) from error
    if version > STORE_FILE_VERSION:
        raise StoreVersionError(path, version, STORE_FILE_VERSION)
    return {name: data[name] for name in FIXED_FIELDS if name in data}


def _write(fs: FileSystem, path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".new")
    fd = fs.open(temporary, writable=True, create=True)
    try:
        fs.set_length(fd, 0)
        fs.write(fd, content, 0)
        fs.sync(fd)
    finally:
        fs.close(fd)
    fs.rename(temporary, path)
