"""The small files of a store in a snapshot: selection, order, and completeness.

Files that record finished work are read before the cut, files needed to read messages after it. So
nothing in the snapshot refers to a message that is not in it, and no message is of a missing topic:
progress lies at most a moment before the cut, and what was consumed in that moment comes again, as
after the death of a consumer.

    before    samples/, handled.json, redrives/, delays-ended.json, broadcast/, deliveries,
              config/delayOffset.json, checkpoint, progress in members/*.notes, offsets.json,
              offsets.log, config/consumerOffset.json
    after     all other config/*, journal/, created, store.json, settings.json, deleted.json, lock
    never     files of the processes that have the store open, or of this machine
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from storage.configs.consumer_offsets import CONSUMER_OFFSET_FILE, LMQ_CONSUMER_OFFSET_FILE
from storage.configs.delay_offsets import DELAY_OFFSET_FILE
from storage.configs.delivery_notes import DELIVERIES_FILE
from storage.configs.pending_commits import notes_in, read_notes
from storage.configs.progress import OFFSETS_FILE, OFFSETS_MARK, ProgressFile, ProgressKey
from storage.configs.progress_table import QueueProgress
from storage.files.bounded import read_with_status
from storage.files.creating import create, is_temporary, make_folders
from storage.files.fs import FileSystem
from storage.format.fastjson import loads
from storage.format.names import (
    ABORT,
    BATCHCONSUMEQUEUE,
    BROADCAST_FOLDER,
    CHECKPOINT,
    COMMITLOG,
    CONFIG,
    CONSUMEQUEUE,
    INDEX,
    LOCK,
    MEMBERS_FOLDER,
    OURS,
    REBUILT_FOLDER,
    SET_ASIDE_FOLDER,
    SINK_FOLDER,
    SNAPSHOT_MANIFEST,
)
from storage.format.strict_json import is_utf8

from .file_copy import FileCopier, set_times

_BAK: Final = ".bak"
_TMP: Final = ".tmp"
_BEFORE_OURS: Final = (
    *("samples", "handled.json", "redrives", "delays-ended.json", BROADCAST_FOLDER),
    DELIVERIES_FILE,
)
_OFFSETS: Final = (OFFSETS_MARK, OFFSETS_FILE)
"""In this order: an old store that is given a log meanwhile has it before the mark."""
_BEFORE_CONFIG: Final = (DELAY_OFFSET_FILE, LMQ_CONSUMER_OFFSET_FILE, CONSUMER_OFFSET_FILE)
_NOT_OURS: Final = frozenset(
    {"shared", "queues", "bells", "members", "locks", "kept", "quarantine", "lock"}
) | {REBUILT_FOLDER, SET_ASIDE_FOLDER, SINK_FOLDER}
_STAGED: Final = (".new", ".tmp", ".lock")
_ELSEWHERE: Final = frozenset({COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG, OURS, CHECKPOINT, ABORT})
_NOT_OF_A_STORE: Final = frozenset({SNAPSHOT_MANIFEST, LOCK})
_WHOLE_WITHIN_S: Final = 2.0
_PAUSE_S: Final = 0.02
_JUST_NOW_S: Final = 5.0

Notes = dict[ProgressKey, QueueProgress]


def place_before(root: Path, stage: Path, placer: FileCopier) -> tuple[Notes, list[str]]:
    """Copy the files that are read before the cut.

    Gives progress that is in no file yet, and sentences about incomplete files.
    """
    ours = root / OURS
    notes: list[str] = []
    for name in _BEFORE_OURS:
        notes += _place_ours(ours / name, stage / OURS / name)
    for name in _with_bak(_BEFORE_CONFIG[:1]):
        notes += _place_json(root / CONFIG / name, stage / CONFIG / name)
    _place_other(root / CHECKPOINT, stage / CHECKPOINT, placer)
    shown = _notes(ours / MEMBERS_FOLDER)
    for name in _OFFSETS:
        notes += _place_ours(ours / name, stage / OURS / name)
    for name in _with_bak(_BEFORE_CONFIG[1:]):
        notes += _place_json(root / CONFIG / name, stage / CONFIG / name)
    return shown, notes


def place_after(root: Path, stage: Path, placer: FileCopier) -> list[str]:
    """Copy all other small files; gives sentences about incomplete ones."""
    notes: list[str] = []
    early = {*_with_bak(_BEFORE_CONFIG)}
    make_folders(stage / CONFIG)
    # Java deletes a file for a moment before it renames the one that takes its place.
    found = [path.name for path in _entries(root / CONFIG) if not is_temporary(path.name)]
    names = {name.removesuffix(_TMP) for name in found}
    names |= {name.removesuffix(_BAK) for name in names}
    for name in sorted(names - early):
        path = root / CONFIG / name
        why = _no_copy(path)
        if why:
            notes += why
        elif path.is_dir():
            notes += _place_tree(path, stage / CONFIG / name, placer)
        elif not name.endswith(_STAGED):
            notes += _place_json(path, stage / CONFIG / name)
    for path in _entries(root / OURS):
        if not _is_of_processes(path.name) and path.name not in (*_BEFORE_OURS, *_OFFSETS):
            notes += _place_ours(path, stage / OURS / path.name)
    for path in _entries(root):
        if path.name in _ELSEWHERE or path.name in _NOT_OF_A_STORE:
            continue
        why = _no_copy(path)
        if why:
            notes += why
        elif path.is_dir():
            notes += _place_tree(path, stage / path.name, placer)
        elif path.is_file() and not path.name.endswith(_STAGED):
            _place_other(path, stage / path.name, placer)
    _place_other(root / LOCK, stage / LOCK, placer)
    if (root / BATCHCONSUMEQUEUE).is_dir():
        notes.append("batch consume queues of 5.x are copied as they are, without a cut")
    return notes


def merge_notes(stage: Path, notes: Notes, fs: FileSystem) -> None:
    """Write progress that was in no file into the copy's files, Java's too."""
    progress = ProgressFile(stage, fs)
    if notes:
        progress.commit(notes)
    if any((stage / OURS / name).exists() for name in _OFFSETS):
        progress.export()
    for path in _entries(stage / OURS):
        if path.name.endswith(_STAGED):
            path.unlink()


def _notes(folder: Path) -> Notes:
    found: Notes = {}
    for path in notes_in(folder):
        for key, progress in read_notes(path):
            if progress > found.get(key, QueueProgress(-1)):
                found[key] = progress
    return found


def _with_bak(names: tuple[str, ...]) -> list[str]:
    return [name + suffix for name in names for suffix in ("", _BAK)]


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return


def _no_copy(path: Path) -> list[str]:
    """Why an object is left out: a sentence, or nothing."""
    if path.is_symlink() and path.is_dir():  # it may lead to a folder above it, or out of the store
        return [f"{path} is a link to a folder, and is left out"]
    if not is_utf8(path.name):
        return [f"{path} is left out: its name is no UTF-8, as the names of a snapshot are"]
    return []


def _is_of_processes(name: str) -> bool:
    """Whether an entry of the folder of our files is of the processes that have the store open.

    Not so below it: there a folder may have the name of a group.
    """
    return name in _NOT_OURS or name.startswith("new-") or name.endswith(_STAGED)


def _place_ours(source: Path, target: Path) -> list[str]:
    """A file of our own, which is replaced as a whole, or lines that are only added to. Gives
    sentences about what is left out."""
    name = source.name
    notes = _no_copy(source)
    if notes:
        return notes
    if source.is_dir():
        for path in _entries(source):
            notes += _place_ours(path, target / path.name)
        return notes
    if name.endswith(_STAGED) or name == LOCK:
        return []
    read = _read(source)
    if read is not None:
        data, modified_ns = read
        if name.endswith(".jsonl") or name == OFFSETS_FILE:
            data = data[: data.rfind(b"\n") + 1]  # another process is writing the next line
        _write(target, data, modified_ns)
    return notes


def _place_json(source: Path, target: Path) -> list[str]:
    """A settings file. Java deletes it before it renames the new one, and writes .bak in place."""
    read = _read(source)
    until = time.monotonic() + _WHOLE_WITHIN_S
    while not _is_whole(read) and _is_being_written(source) and time.monotonic() < until:
        time.sleep(_PAUSE_S)
        read = _read(source)
    if read is None:
        return []
    _write(target, *read)
    return [] if _is_whole(read) else [f"{source} is not whole JSON; copied as it is"]


def _is_being_written(path: Path) -> bool:
    """Whether the file, or its replacement, was written just now."""
    for suffix in ("", _TMP, _BAK):
        name = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError, NotADirectoryError):
            if time.time_ns() - name.stat().st_mtime_ns < _JUST_NOW_S * 1e9:
                return True
    return False


def _is_whole(read: tuple[bytes, int] | None) -> bool:
    if read is None:
        return False
    text = read[0].decode("utf-8", "surrogateescape")
    try:
        loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _read(path: Path) -> tuple[bytes, int] | None:
    """Bytes and modification time of a regular file; None if there is none.

    Raises CorruptFileError for one that is too large for such a file.
    """
    try:
        if not path.is_file():
            return None
        data, status = read_with_status(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return data, status.st_mtime_ns


def _write(target: Path, data: bytes, modified_ns: int) -> None:
    make_folders(target.parent)
    with os.fdopen(create(target), "wb") as file:
        file.write(data)
        file.flush()
        set_times(file.fileno(), modified_ns)


def _place_other(source: Path, target: Path, placer: FileCopier) -> None:
    with suppress(FileNotFoundError):  # it has gone meanwhile
        placer.part(source, target)


def _place_tree(source: Path, target: Path, placer: FileCopier) -> list[str]:
    """Copy an unknown folder as it is; gives sentences about what is left out."""
    make_folders(target)
    notes: list[str] = []
    for path in _entries(source):
        why = _no_copy(path)
        if why:
            notes += why
        elif path.is_dir():
            notes += _place_tree(path, target / path.name, placer)
        elif path.is_file():
            _place_other(path, target / path.name, placer)
    return notes
