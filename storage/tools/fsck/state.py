"""Checking files beside log, queues and index: file names and lengths, checkpoint, abort."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from storage.config import StoreConfig
from storage.detect import not_covered
from storage.files.bounded import read_first
from storage.format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from storage.format.names import (
    ABORT,
    CHECKPOINT,
    COMMITLOG,
    CONSUMEQUEUE,
    INDEX,
    file_name,
    is_index_file_name,
    parse_file_name,
)

from .findings import Checked, Code, Finding, Severity
from .path_conflicts import in_the_way, is_blocked

Emit = Callable[[Finding], None]

_TOPIC: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
_QUEUE: Final = re.compile(r"[0-9]+")
_REFUSES = "a Java broker does not start with it"
_RECOVER = "rmqctl store repair, or open the store for writing: that makes it again"


class FileCheck:
    """Names and lengths of the files in the folders of log, queues and index."""

    def __init__(self, root: Path, config: StoreConfig, emit: Emit, checked: Checked) -> None:
        self._root = root
        self._config = config
        self._emit = emit
        self._checked = checked
        self.holes: list[tuple[str, int, int]] = []
        """The byte ranges that missing and short files do not hold: folder, first byte and end."""

    def log(self) -> None:
        """Check the commit log's folder."""
        size = self._config.mapped_file_size_commit_log
        self._numbered_files(
            self._root / COMMITLOG,
            size,
            Code.LOG_FILE_LENGTH,
            Code.LOG_FILE_MISSING,
            "messages in it",
            Severity.ERROR,
            "restore the file from a copy, or rmqctl store repair",
            f"not the number of a file of {size} bytes",
        )

    def queues(self) -> None:
        """Check the folders of all queues."""
        size = self._config.mapped_file_size_consume_queue
        for topic in self._folders(self._root / CONSUMEQUEUE, _TOPIC, "topic"):
            for queue in self._folders(topic, _QUEUE, "queue"):
                if not (queue.name.isascii() and queue.name.isdigit()):
                    self._foreign(queue, "not the number of a queue")
                    continue
                offsets = self._numbered_files(
                    queue,
                    size,
                    Code.QUEUE_FILE_LENGTH,
                    Code.QUEUE_FILE_MISSING,
                    "the places of messages",
                    Severity.ERROR,
                    f"rmqctl store rebuild queue -t {topic.name}",
                )
                self._empty_last_file(queue, offsets)

    def index(self) -> None:
        """Check the index folder's names; lengths are checked with the content."""
        for path in _entries(self._root / INDEX):
            if not is_index_file_name(path.name):
                self._foreign(path, "not the name of an index file")
            elif is_blocked(path):
                self._emit(in_the_way(self._root, path))

    def _numbered_files(
        self,
        folder: Path,
        size: int,
        length_code: Code,
        missing_code: Code,
        content: str,
        missing_severity: Severity,
        remedy: str,
        wrong_number: str = "",
    ) -> list[int]:
        """Give the first offsets of the files; ``wrong_number`` is the effect of a file number that
        no file may have: it keeps a writer out."""
        offsets = []
        for path in _entries(folder):
            offset = parse_file_name(path.name)
            if offset is not None and not path.is_file():
                if is_blocked(path):
                    self._emit(in_the_way(self._root, path))
                continue
            if offset is not None and offset % size and wrong_number:
                self._emit(in_the_way(self._root, path, what=wrong_number))
                continue
            if offset is None or offset % size:
                self._foreign(path, f"not the name of a file of {size} bytes; {_REFUSES}")
                continue
            try:
                length = path.stat().st_size
            except FileNotFoundError:  # deleted meanwhile
                continue
            offsets.append(offset)
            self._checked.files += 1
            if length != size:
                if length < size:
                    self._hole(folder, offset + length, offset + size)
                self._add(
                    length_code,
                    Severity.WARNING,
                    path,
                    f"the file has {length} bytes, those of this store {size}",
                    _REFUSES,
                    remedy,
                )
        offsets.sort()
        for before, after in pairwise(offsets):
            if after != before + size:
                self._hole(folder, before + size, after)
                self._add(
                    missing_code,
                    missing_severity,
                    folder / file_name(before + size),
                    f"files between {file_name(before)} and {file_name(after)} are missing",
                    f"{content} cannot be read",
                    remedy,
                    0,
                )
        return offsets

    def _empty_last_file(self, queue: Path, offsets: list[int]) -> None:
        if len(offsets) < 2:
            return
        path = queue / file_name(offsets[-1])
        try:
            if any(read_first(path, 4096)):
                return
        except FileNotFoundError:  # deleted meanwhile
            return
        self._add(
            Code.QUEUE_FILE_EMPTY,
            Severity.WARNING,
            path,
            "a file without units after others",
            "a Java broker takes its first zeros for a message, and serves a bogus one",
            "rmqctl store repair",
        )

    def _folders(self, folder: Path, names: re.Pattern[str], of: str) -> Iterator[Path]:
        """Folders of topics or queues, which have such names."""
        for path in _entries(folder):
            if path.is_dir():
                yield path
            elif names.fullmatch(path.name) and is_blocked(path, folder=True):
                effect = f"messages to this {of} cannot be stored"
                self._emit(in_the_way(self._root, path, effect=effect, folder=True))
            elif path.is_file():
                self._foreign(path, f"a file among folders of {of}s")

    def _foreign(self, path: Path, what: str) -> None:
        self._add(Code.FOREIGN_FILE, Severity.INFO, path, what, "rmqctl ignores it", "move it away")

    def _hole(self, folder: Path, start: int, end: int) -> None:
        self.holes.append((str(folder.relative_to(self._root)), start, end))

    def _add(
        self,
        code: Code,
        severity: Severity,
        path: Path,
        what: str,
        effect: str,
        fix: str,
        position: int | None = None,
    ) -> None:
        name = str(path.relative_to(self._root))
        self._emit(Finding(code, severity, name, position, what, effect, fix))


def check_checkpoint(root: Path, last_store_timestamp: int, emit: Emit, *, closed: bool) -> None:
    """Compare the checkpoint with the newest record's store time (ms, 0 = no records).

    ``closed``: the store was closed cleanly, so the checkpoint should be as new as the log.
    """
    path = root / CHECKPOINT
    if is_blocked(path):
        return  # reported with the conflict; opening a pipe would block
    try:
        data = read_first(path, CHECKPOINT_SIZE)
    except FileNotFoundError:
        if last_store_timestamp:
            emit(
                _of_checkpoint(
                    Code.CHECKPOINT_MISSING, "the file is missing", "recovery reads the whole log"
                )
            )
        return
    whole = len(data) >= CHECKPOINT_SIZE
    if not whole:
        emit(
            _of_checkpoint(
                Code.CHECKPOINT_SHORT,
                f"the file has {len(data)} bytes of {CHECKPOINT_SIZE}",
                "missing values count as 0; recovery reads more of the log",
                0,
            )
        )
    fields = CheckpointData.unpack(data[:CHECKPOINT_SIZE].ljust(CHECKPOINT_SIZE, b"\0"))
    newest = max(fields.physic_msg_timestamp, fields.logics_msg_timestamp)
    if min(fields.physic_msg_timestamp, fields.logics_msg_timestamp) < 0:
        emit(
            _of_checkpoint(
                Code.CHECKPOINT_AHEAD, "it holds a negative time", "recovery reads more", 0
            )
        )
    elif closed and fields.logics_msg_timestamp < last_store_timestamp and whole:
        emit(
            Finding(
                Code.CHECKPOINT_BEHIND,
                Severity.INFO,
                CHECKPOINT,
                0,
                f"it vouches for {fields.logics_msg_timestamp}, the newest record is of "
                f"{last_store_timestamp}, although the store was closed cleanly",
                "a recovery reads more of the log",
                "",
            )
        )
    if last_store_timestamp and newest > last_store_timestamp:
        emit(
            Finding(
                Code.CHECKPOINT_AHEAD,
                Severity.INFO,
                CHECKPOINT,
                0,
                f"it vouches for {newest}, the newest record is of {last_store_timestamp}",
                "newer records were cut off, or recovery may start too late",
                "",
            )
        )


def check_abort(root: Path, writers: str, emit: Emit) -> None:
    """Report whether the store was closed cleanly; ``writers`` names the processes that have it
    open."""
    if not (root / ABORT).exists():
        return
    if writers:
        what, effect = f"the store is open: {writers}", "none"
    else:
        what = "the store was not closed cleanly"
        effect = "the next opening for writing runs recovery"
    emit(Finding(Code.NOT_CLOSED, Severity.INFO, ABORT, None, what, effect, ""))


def check_covered(root: Path, emit: Emit) -> None:
    """Name the parts of this store that rmqctl does not read."""
    for sentence in not_covered(root):
        emit(Finding(Code.NOT_COVERED, Severity.INFO, ".", None, sentence, "not checked", ""))


def _of_checkpoint(code: Code, what: str, effect: str, position: int | None = None) -> Finding:
    return Finding(code, Severity.WARNING, CHECKPOINT, position, what, effect, _RECOVER)


def _entries(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        yield folder / name
