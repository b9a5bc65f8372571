"""Finding the named file, and its kind."""

import mmap
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.cli.paths import expanded
from rmqctl.errors import CliError, NotFound
from storage.configs.progress_reader import OFFSETS_FILE
from storage.coordination.shared_state import SHARED_STATE_NAME
from storage.files.read_files import ReadMap
from storage.format.names import (
    ABORT,
    CHECKPOINT,
    COMMITLOG,
    CONSUMEQUEUE,
    CONSUMEQUEUE_EXT,
    LOCK,
    OURS,
    is_index_file_name,
    parse_file_name,
)

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.config import StoreConfig


class FileKind(StrEnum):
    """The kind of a file of a store."""

    LOG = "commit log file"
    QUEUE = "consume queue file"
    EXT = "consumequeue_ext file"
    INDEX = "index file"
    CHECKPOINT = "checkpoint"
    PAGE = "shared page"
    JSON = "settings"
    LINES = "lines of JSON"
    TEXT = "text"


class DumpFile(NamedTuple):
    """A file to decode. ``root`` is the folder of its store, None for a file outside of one."""

    path: Path
    kind: FileKind
    root: Path | None


_LEVELS: Final = 5
"""Number of parent folders that may be the store: consumequeue/<topic>/<queue>/<file>, and one."""
_OF_5X: Final = frozenset({"timerwheel", "timercheck", "timerlog", "compaction", "kvStore"})
_TEXTS: Final = frozenset({ABORT, LOCK, "queues", "created", "abort.bak"})


def find_file(cli: "Cli", name: str) -> DumpFile:
    """The file of a name, relative to the working folder or to the store.

    NotFound if there is none, or if it is not a file of a store.
    """
    path = expanded(name)
    if not path.exists():
        inside = cli.store.path / path
        if path.is_absolute() or not inside.exists():
            places = f"{Path.cwd()} nor in the store {cli.store.path}"
            raise NotFound(f"there is no file {name}, neither in {places}")
        path = inside
    path = path.absolute()
    if path.is_dir():
        raise NotFound(f"{path} is a folder; name a file in it")
    kind = _kind(path)
    if kind is None:
        if path.name in _OF_5X or _OF_5X.intersection(folder.name for folder in path.parents):
            raise CliError(f"{path} is a file of RocketMQ 5.x only; rmqctl does not decode it")
        raise NotFound(f"{path} is not a file of a RocketMQ store")
    return DumpFile(path, kind, _root_of(path))


def config_of(file: DumpFile) -> "StoreConfig | None":
    """The file sizes of the store of the file, as far as known."""
    from storage.detect import detect_config
    from storage.errors import StoreError

    if file.root is None:
        return None
    try:
        return detect_config(file.root)
    except StoreError:
        return None


def map_file(path: Path) -> ReadMap | None:
    """The file's bytes, mapped for reading; None for an empty file."""
    with path.open("rb") as opened:
        if not path.stat().st_size:
            return None
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        return ReadMap(mapped, os.fstat(opened.fileno()).st_ino)


def _root_of(path: Path) -> Path | None:
    from rmqctl.admin.store_folder import is_a_store_above

    for folder in list(path.parents)[:_LEVELS]:
        if is_a_store_above(folder):
            return folder
    return None


def _kind(path: Path) -> FileKind | None:
    """The kind of a file by its folders, else by its name."""
    above = [folder.name for folder in list(path.parents)[:_LEVELS]]
    name = path.name
    if parse_file_name(name) is not None:
        for folder, kind in (
            (COMMITLOG, FileKind.LOG),
            (CONSUMEQUEUE, FileKind.QUEUE),
            (CONSUMEQUEUE_EXT, FileKind.EXT),
        ):
            if folder in above:
                return kind
        return _by_content(path)
    if name == CHECKPOINT:
        return FileKind.CHECKPOINT
    if name == SHARED_STATE_NAME and OURS in above:
        return FileKind.PAGE
    if ".json" in name:
        return FileKind.LINES if name.endswith(".jsonl") else FileKind.JSON
    if name == OFFSETS_FILE and OURS in above:
        return FileKind.LINES
    if is_index_file_name(name):
        return FileKind.INDEX
    if name in _TEXTS:
        return FileKind.TEXT
    return _by_content(path)


def _by_content(path: Path) -> FileKind | None:
    """The kind of settings of other versions, and of files that were copied out of a store."""
    from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, StoreUnit
    from storage.format.record import CheckKind, check_record

    file = map_file(path)
    if file is None:
        return None
    if file.map[:1] == b"{":
        return FileKind.JSON
    if check_record(file.view, 0, file.length).kind is not CheckKind.INVALID:
        return FileKind.LOG
    if file.length >= CQ_STORE_UNIT_SIZE and not file.length % CQ_STORE_UNIT_SIZE:
        unit = StoreUnit.unpack_from(file.view)
        if unit.is_present and parse_file_name(path.name) is not None:
            return FileKind.QUEUE
    return None
