"""Making a store, and the small files that mark a store of rmqctl's.

``rmqctl/created``      rmqctl made this store: retention and delayed delivery may run
``rmqctl/store.json``   lengths of its files, for the next opener
"""

from __future__ import annotations

import errno
import json
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from .config import FIXED_FIELDS, StoreConfig, changed_settings
from .configs.config_file import replace_file
from .configs.store_settings import SETTINGS_FILE, StoreSettings, write_store_settings
from .errors import CorruptFileError, StoreVersionError
from .files.bounded import read_bounded
from .files.creating import is_temporary
from .files.ownership import note_store, refuse_to_shut_out
from .format.errors import JsonError
from .format.names import COMMITLOG, CONFIG, CONSUMEQUEUE, INDEX, LOCK, OURS
from .format.shapes import MAX_INT, ShapeError, check, flag, members, whole
from .format.strict_json import loads_strict
from .format.versions import FORMATS

if TYPE_CHECKING:
    from .files.fs import FileSystem

CREATED: Final = "created"
STORE_FILE: Final = "store.json"
STORE_FILE_VERSION: Final = FORMATS[STORE_FILE]
_LOCK_CONTENT: Final = b"lock"
_FOLDERS: Final = frozenset({COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG, OURS})
_SEAL: Final = "crc"
_GIVEN: Final = "given"
MAX_VERSION: Final = 1_000
_MAX_SIZE: Final = 1 << 20
_REMEDY: Final = (
    "'rmqctl store repair' makes it anew; or remove it to have the sizes taken from the store's "
    "own files"
)
_VERSIONED: Final = members({"version": whole(1, MAX_VERSION)})
_SIZES: Final = members(
    {},
    {
        "mapped_file_size_commit_log": whole(1024, MAX_INT),
        "mapped_file_size_consume_queue": whole(1, MAX_INT),
        "max_hash_slot_num": whole(1, MAX_INT),
        "max_index_num": whole(2, MAX_INT),
        "message_index_enable": flag,
    },
)


def create_store(fs: FileSystem, root: Path, config: StoreConfig) -> None:
    """Make an empty store in ``root``: folders, Java's lock file, and our record of the sizes, and
    of the other settings that ``config`` changes: they hold for the next opener too.

    Files are made with the first message. Everything is on the device when this returns. Raises
    OSError, FileExistsError too for a folder that is not empty, and ValueError for a setting that
    cannot be recorded.
    """
    changed = changed_settings(config, but=FIXED_FIELDS)
    StoreConfig.from_record(changed)  # no setting is recorded that an opener would refuse
    fs.make_dirs(root)
    if any(root.iterdir()):
        raise FileExistsError(errno.EEXIST, "the folder is not empty")
    refuse_to_shut_out(root)
    note_store(root)
    for name in (COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG, OURS):
        fs.make_dirs(root / name)
    write_sizes(fs, root, config)
    if changed:
        write_store_settings(root, StoreSettings(changed, {}), fs)
    _write(fs, root / LOCK, _LOCK_CONTENT)
    _write(fs, root / OURS / CREATED, b"")
    fs.sync_dir(root / OURS)
    fs.sync_dir(root)
    fs.sync_dir(root.parent)


def remove_unfinished_store(root: Path) -> None:
    """Remove what a killed :func:`create_store` has left; any other folder stays as it is.

    That is: no mark of a finished store, empty folders, and of files only the lock file and our
    records. Raises OSError.
    """
    ours = root / OURS
    if was_created_here(root) or not _holds_only(root, _FOLDERS | {LOCK}):
        return
    if not _holds_only(ours, {STORE_FILE, SETTINGS_FILE}):
        return
    folders = [root / name for name in _FOLDERS - {OURS}]
    if any(any(folder.iterdir()) for folder in folders if folder.is_dir()):
        return
    for folder in (ours, *folders, root):
        for path in folder.iterdir() if folder.is_dir() else ():
            path.unlink()
        if folder != root and folder.is_dir():
            folder.rmdir()


def _holds_only(folder: Path, names: Set[str]) -> bool:
    """Whether a folder holds nothing but these, and files that were to replace one of them."""
    if not folder.is_dir():
        return not folder.exists()
    return all(path.name in names or is_temporary(path.name) for path in folder.iterdir())


def was_created_here(root: Path) -> bool:
    """Whether rmqctl made this store (then old files go and delayed messages are delivered)."""
    return (root / OURS / CREATED).exists()


def write_sizes(fs: FileSystem, root: Path, config: StoreConfig) -> None:
    """Record the lengths of the store's files."""
    _write(fs, root / OURS / STORE_FILE, sizes_record(config))


def sizes_record(config: StoreConfig) -> bytes:
    """Give the content of the record. Its last member is the CRC-32 of the others.

    Other settings that differ from the defaults are in it as a second copy, for repair:
    settings.json counts.
    """
    data: dict[str, Any] = {"version": STORE_FILE_VERSION}
    data |= {name: getattr(config, name) for name in FIXED_FIELDS}
    given = changed_settings(config, but=FIXED_FIELDS)
    if given:
        data[_GIVEN] = given
    return json.dumps({**data, _SEAL: _sum_of(data)}, indent=1).encode() + b"\n"


def given_settings(root: Path) -> dict[str, Any]:
    """Give the settings that the store was made with, from the record; nothing if it cannot be
    read."""
    try:
        read_sizes(root)
        given = loads_strict(read_bounded(root / OURS / STORE_FILE, _MAX_SIZE)).get(_GIVEN)
    except (OSError, ValueError, CorruptFileError, StoreVersionError):
        return {}
    return given if isinstance(given, dict) else {}


def _take_seal(data: dict[str, Any]) -> None:
    """Take the checksum out of a record and check it; early records have none."""
    seal = data.pop(_SEAL, None)
    if seal is not None and seal != _sum_of(data):
        raise ShapeError(_SEAL, "is not the check sum of the rest")


def _sum_of(data: dict[str, Any]) -> str:
    return f"{crc32(json.dumps(data).encode()):08x}"


def read_sizes(root: Path) -> dict[str, Any] | None:
    """The recorded lengths by StoreConfig's names, None if there is no record.

    Raises CorruptFileError, and StoreVersionError for a record of a newer rmqctl.
    """
    path = root / OURS / STORE_FILE
    try:
        text = read_bounded(path, _MAX_SIZE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        data = loads_strict(text)
        check(data, _VERSIONED)
        if data["version"] > STORE_FILE_VERSION:
            raise StoreVersionError(path, data["version"], STORE_FILE_VERSION)
        _take_seal(data)
        check(data, _SIZES)
        sizes = {name: data[name] for name in FIXED_FIELDS if name in data}
        StoreConfig().with_(**sizes)
    except ValueError as error:
        position = error.position if isinstance(error, JsonError) else 0
        reason = error.reason if isinstance(error, JsonError) else str(error)
        what = f"it is not the record of sizes: {reason} ({_REMEDY})"
        raise CorruptFileError(path, position, what) from error
    return sizes


def _write(fs: FileSystem, path: Path, content: bytes) -> None:
    replace_file(fs, path, content)
