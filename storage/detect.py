"""Detecting what a folder is: a store or not, of which kind, with files of which lengths.

A broker keeps the lengths of its files in its own settings, outside the store. rmqctl records them
for its stores (``rmqctl/store.json``); for any other store they are determined from the files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE

from .config import FIXED_FIELDS, StoreConfig
from .configs.store_settings import read_store_settings, settings_error
from .errors import (
    CorruptFileError,
    StoreNotFoundError,
    StoreNotReadableError,
    UnsupportedStoreError,
    go_on_without,
)
from .files.read_files import leads_to_file, leads_to_folder
from .format.names import (
    ABORT,
    BATCHCONSUMEQUEUE,
    COMMITLOG,
    CONFIG,
    CONSUMEQUEUE,
    CONSUMEQUEUE_EXT,
    DLEDGER,
    INDEX,
    OURS,
    is_index_file_name,
    parse_file_name,
)
from .layout import STORE_FILE, read_sizes

_ENOUGH_FILES: Final = 200
_FOLDERS: Final = frozenset({COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG})
_LOG_FILE_SIZES: Final = range(1024, 1 << 31)

_FEW: Final = 16
"""Entries of a folder that are searched for the intended store."""


def detect_config(
    root: Path,
    config: StoreConfig | None = None,
    *,
    reading: bool = False,
    log_only: bool = False,
) -> StoreConfig:
    """Give the settings of the store in ``root``, with the sizes of its files.

    ``config`` None takes those that were recorded for the store (configs/store_settings.py). With
    ``reading`` a damaged record is left out, with a DamagedFileWarning: the sizes come from the
    files. ``log_only``: sizes of other files than the log's are not sought where none are recorded.

    Raises StoreNotFoundError, StoreNotReadableError, UnsupportedStoreError, and CorruptFileError
    or StoreVersionError for rmqctl's own record.
    """
    check_is_store(root)
    try:
        base = config
        if base is None:
            try:
                base = recorded_config(root)
            except CorruptFileError as error:
                if not reading:
                    raise
                base = StoreConfig()
                go_on_without(error, "the settings of the store are taken to be the defaults")
        try:
            sizes = read_sizes(root)
        except CorruptFileError as error:
            if not reading:
                raise
            sizes = None
            go_on_without(error, "the sizes of files are taken from the files")
        if sizes is None or any(name not in sizes for name in FIXED_FIELDS):
            sizes = _sizes_of_files(root, base, log_only=log_only) | (sizes or {})
    except PermissionError as error:
        raise StoreNotReadableError(Path(error.filename or root)) from error
    return base.with_(**sizes)


def recorded_config(root: Path) -> StoreConfig:
    """Give the settings that were recorded for a store, the defaults for all others.

    Raises CorruptFileError and StoreVersionError.
    """
    settings = read_store_settings(root)
    try:
        return StoreConfig.from_record(settings.store)
    except ValueError as error:
        raise settings_error(root, error) from error


def _store_below(root: Path, names: set[str]) -> Path | None:
    """The store in a folder that is none itself, as ``store`` in RocketMQ's home; None if several.

    In a folder with more than a few entries only one with the usual name counts.
    """
    usual = [name for name in ("store",) if name in names]
    candidates = usual or (sorted(names) if len(names) <= _FEW else [])
    found = [root / name for name in candidates if (root / name / COMMITLOG).is_dir()]
    return found[0] if len(found) == 1 else None


def check_is_store(root: Path) -> None:
    """Raise unless ``root`` is a store of a kind that rmqctl reads.

    StoreNotFoundError, StoreNotReadableError, or UnsupportedStoreError that names the format.
    """
    try:
        names = {path.name for path in root.iterdir()}
    except FileNotFoundError:
        raise StoreNotFoundError(root) from None
    except NotADirectoryError:
        raise StoreNotFoundError(root, "a file, not a folder") from None
    except PermissionError as error:
        raise StoreNotReadableError(root) from error
    try:
        for folder in sorted(_FOLDERS.intersection(names)):
            if not (root / folder).is_dir():
                raise StoreNotFoundError(root, f"{folder} is a file, not a folder")
        if any(name.startswith(DLEDGER) and (root / name).is_dir() for name in names):
            raise UnsupportedStoreError(root, "a commit log of DLedger (enableDLegerCommitLog)")
        is_store = (
            (root / COMMITLOG).is_dir()
            or (root / CONSUMEQUEUE).is_dir()
            or (root / OURS / STORE_FILE).exists()
            or (root / CONFIG / "topics.json").exists()
        )
        if not is_store:
            what = "it is empty" if not names else "it has no commitlog folder"
            raise StoreNotFoundError(root, what, _store_below(root, names))
        if (root / CONSUMEQUEUE / "CURRENT").exists():
            raise UnsupportedStoreError(
                root, "consume queues in RocksDB (storeType defaultRocksDB)"
            )
    except PermissionError as error:
        raise StoreNotReadableError(Path(error.filename or root)) from error


def version_hint(root: Path) -> str:
    """Guess the writer of the store: ``rmqctl``, ``5.x`` or ``4.9``; for display only."""
    if (root / OURS / STORE_FILE).exists():
        return "rmqctl"
    signs = ("abort.bak", "timerwheel", "compaction", "epochFileCheckpoint", BATCHCONSUMEQUEUE)
    if any((root / sign).exists() for sign in signs):
        return "5.x"
    try:
        if (root / ABORT).stat().st_size:  # 5.x writes its pid
            return "5.x"
    except OSError:
        pass
    return "4.9"


def not_covered(root: Path) -> list[str]:
    """Name the parts of a store that rmqctl does not read or write, one sentence each."""
    found = []
    if _has_files(root / BATCHCONSUMEQUEUE):
        topics = sorted(path.name for path in (root / BATCHCONSUMEQUEUE).iterdir())
        found.append(f"batch consume queues of 5.x, topics {', '.join(topics)}: not read")
    if _has_files(root / CONSUMEQUEUE_EXT):
        found.append("consumequeue_ext: read for tag filters, never written")
    if _has_files(root / "compaction" / "compactionLog"):
        found.append("compacted topics of 5.x: the compacted copies are not read")
    if _has_files(root / "kvStore"):
        found.append("the RocksDB of 5.x pop consumption (kvStore): not read")
    if any((root / CONFIG / name).exists() for name in ("rdb", "topics", "consumerOffsets")):
        found.append("settings of 5.x in RocksDB (below config): not read")
    if _has_files(root / "timerlog"):
        found.append("timer messages of 5.x (timerlog): not delivered")
    return found


def _sizes_of_files(root: Path, base: StoreConfig, *, log_only: bool) -> dict[str, int]:
    log = _log_file_size(root / COMMITLOG)
    sizes = {} if log is None else {"mapped_file_size_commit_log": log}
    if log_only:
        return sizes
    from storage.index.sizes import find_index_sizes  # for stores of other programs

    queue = _queue_file_size(root / CONSUMEQUEUE)
    if queue is not None:
        sizes["mapped_file_size_consume_queue"] = queue
    index = find_index_sizes(list(_index_files(root / INDEX)), base)
    if index is not None:
        sizes |= {"max_hash_slot_num": index[0], "max_index_num": index[1]}
    return sizes


def _log_file_size(folder: Path) -> int | None:
    """Length of the log's files: the step of their names, or the length of most of them."""
    lengths = _lengths(folder)
    usual = _most_common(length for length in lengths.values() if length in _LOG_FILE_SIZES)
    steps = [after - before for before, after in pairwise(sorted(lengths))]
    if usual is None or all(step % usual == 0 for step in steps):
        return usual
    return _most_common(step for step in steps if step in _LOG_FILE_SIZES) or usual


def _queue_file_size(root: Path) -> int | None:
    lengths: list[int] = []
    for queue in _queue_folders(root):
        lengths += _lengths(queue).values()
        if len(lengths) >= _ENOUGH_FILES:
            break
    return _most_common(length for length in lengths if length and length % CQ_STORE_UNIT_SIZE == 0)


def _queue_folders(root: Path) -> Iterator[Path]:
    for topic in _sub_folders(root):
        yield from _sub_folders(topic)


def _sub_folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if leads_to_folder(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _lengths(folder: Path) -> dict[int, int]:
    """Lengths of the files with a 20-digit name, by their first offset."""
    try:
        with os.scandir(folder) as entries:
            found = [
                (parse_file_name(entry.name), entry.stat().st_size)
                for entry in entries
                if leads_to_file(entry)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {offset: length for offset, length in found if offset is not None}


def _index_files(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if is_index_file_name(name):
            yield folder / name


def _most_common(lengths: Iterator[int]) -> int | None:
    """The most common length; of two that are equally common the longer one."""
    counts = Counter(lengths)
    return max(counts, key=lambda length: (counts[length], length)) if counts else None


def _has_files(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(True for _ in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
