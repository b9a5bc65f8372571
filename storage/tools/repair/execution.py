"""Executing a plan: each step's old bytes into the quarantine, then the write, then a sync.

Before each write the bytes are compared with those of the plan; only planned bytes are written. A
crash between two steps leaves a store that is no worse than before, and planning once more finds
the remaining steps: units are only replaced after the log is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

from storage.configs.config_file import give_up, replace_file
from storage.coordination.exclusive import distrust_shared_state
from storage.errors import StoreChangedError, StoreNotWritableError
from storage.files.checksum import crc_of
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.readonly import StoreView
from storage.tools.quarantine import Quarantine
from storage.tools.rebuild.index import rebuild_index
from storage.tools.rebuild.queue import rebuild_queues
from storage.tools.rebuild.replacement import (
    put_index_in_place,
    put_queues_in_place,
    staging,
    unclean,
)
from storage.tools.snapshot.file_copy import FileCopier

from .steps import Action, Plan, Step

if TYPE_CHECKING:
    from storage.config import StoreConfig

_STEP: Final = 1 << 20
_NEW: Final = "new-repaired"
_DERIVED: Final = (Action.REBUILD_QUEUE, Action.REBUILD_INDEX)


def carry_out_plan(
    root: Path, config: StoreConfig, plan: Plan, now_ms: int, fs: FileSystem | None = None
) -> Iterator[Step]:
    """Do all steps, and give each when it is done and on the device.

    Needs storage.coordination.exclusive.alone until the end. Raises StoreChangedError and
    StoreNotWritableError; steps that were given before are done and stay done.
    """
    fs = fs or FileSystem()
    try:
        if plan.executable:
            yield from _Execution(root, config, plan, now_ms, fs).run()
    except OSError as error:
        where = Path(error.filename) if error.filename else root
        raise StoreNotWritableError(where, error.strerror or str(error)) from error


class _Execution:
    def __init__(
        self, root: Path, config: StoreConfig, plan: Plan, now_ms: int, fs: FileSystem
    ) -> None:
        self._root = root
        self._config = config
        self._plan = plan
        self._fs = fs
        self._quarantine = Quarantine(root, now_ms, fs)
        self._moved: dict[str, Path] = {}

    def run(self) -> Iterator[Step]:
        distrust_shared_state(self._fs, self._root)
        derived = [step for step in self._plan.steps if step.action in _DERIVED]
        late = [step for step in self._plan.steps if step.action is Action.CHECKPOINT]
        do = {
            Action.QUARANTINE: self._away,
            Action.BRING_BACK: self._bring_back,
            Action.SET_LENGTH: self._set_length,
            Action.MAKE_FILE: self._make_file,
            Action.RESTORE: self._replace_file,
            Action.CHECKPOINT: self._replace_file,
        }
        for step in self._plan.executable:
            if step.action not in _DERIVED and step.action is not Action.CHECKPOINT:
                do.get(step.action, self._write)(step)
                yield step
        if derived:
            with unclean(self._root, self._fs):
                yield from self._rebuild_queues(
                    [step for step in derived if step.action is Action.REBUILD_QUEUE]
                )
                for step in derived:
                    if step.action is Action.REBUILD_INDEX:
                        self._rebuild_index(step)
                        yield step
        for step in late:
            self._replace_file(step)
            yield step

    # -- bytes --------------------------------------------------------------------------------

    def _write(self, step: Step) -> None:
        """Write records, a blank record or zeros over bytes of a log file."""
        fs, path = self._fs, self._root / step.file
        position, length = step.position or 0, step.length or 0
        self._unshare(path)
        fd = fs.open(path, writable=True)
        try:
            old = fs.read(fd, length, position)
            if len(old) != length or crc32(old) != step.old_crc:
                raise StoreChangedError(path)
            if any(old):
                self._quarantine.keep_bytes(step.file, position, length, step.why)
            modified = path.stat().st_mtime_ns // 1_000_000
            if step.action is Action.CLEAR:
                for start in range(0, length, _STEP):
                    fs.write(fd, bytes(min(_STEP, length - start)), position + start)
            else:
                self._put(fd, step, position)
            fs.sync(fd)
        finally:
            fs.close(fd)
        fs.set_modified(path, modified)  # used by deletion of old files and search by time

    def _unshare(self, path: Path) -> None:
        """Write into a copy if the file has more names: those are a snapshot's."""
        fs = self._fs
        fd = fs.open(path, writable=False)
        try:
            if fs.links(fd) <= 1:
                return
        finally:
            fs.close(fd)
        fs.make_dirs(self._root / OURS)
        fd, staged = fs.create_beside(path, folder=self._root / OURS)
        try:
            try:
                FileCopier(fs, copies_only=True).into(path, fd)
                fs.sync(fd)
            finally:
                fs.close(fd)
            fs.rename(staged, path)
        except BaseException:
            give_up(fs, staged)
            raise
        fs.sync_dir(path.parent)

    def _put(self, fd: int, step: Step, position: int) -> None:
        for record in step.records:
            self._fs.write(fd, record.encode(), position)
            position += record.size
        self._fs.write(fd, step.data, position)

    def _set_length(self, step: Step) -> None:
        fs, path = self._fs, self._root / step.file
        position, length = step.position or 0, step.length or 0
        self._unshare(path)
        fd = fs.open(path, writable=True)
        try:
            size = fs.size(fd)
            if size == position:
                fs.set_length(fd, position + length)
            elif size == position + length:
                self._quarantine.keep_bytes(step.file, position, length, step.why)
                fs.set_length(fd, position)
            else:
                raise StoreChangedError(path)
            fs.sync(fd)
        finally:
            fs.close(fd)

    # -- whole files --------------------------------------------------------------------------

    def _away(self, step: Step) -> None:
        path = self._root / step.file
        if crc_of(path) != step.old_crc:
            raise StoreChangedError(path)
        self._moved[step.file] = self._quarantine.move(step.file, step.why)

    def _bring_back(self, step: Step) -> None:
        fs, target = self._fs, self._root / step.file
        source = self._moved.get(step.source) or self._root / step.source
        if target.exists() or not source.exists():
            raise StoreChangedError(target)
        self._make_folder(target.parent)
        fs.rename(source, target)
        fs.sync_dir(target.parent)
        fs.sync_dir(source.parent)

    def _make_file(self, step: Step) -> None:
        """Under another name first: the log has it whole or not at all."""
        fs, target = self._fs, self._root / step.file
        if target.exists():
            raise StoreChangedError(target)
        fs.make_dirs(self._root / OURS)
        fd, staged = fs.create_beside(self._root / OURS / _NEW)
        try:
            try:
                fs.set_length(fd, step.length or 0)
                self._put(fd, step, 0)
                fs.sync(fd)
            finally:
                fs.close(fd)
            times = [record.store_timestamp for record in step.records]
            if any(time > 0 for time in times):
                fs.set_modified(staged, max(times))
            self._make_folder(target.parent)
            fs.rename(staged, target)
        except BaseException:
            give_up(fs, staged)
            raise
        fs.sync_dir(target.parent)

    def _replace_file(self, step: Step) -> None:
        fs, path = self._fs, self._root / step.file
        if crc_of(path) != step.old_crc:
            raise StoreChangedError(path)
        self._quarantine.keep(step.file, step.why)
        self._make_folder(path.parent)
        replace_file(fs, path, step.data)
        fs.sync_dir(path.parent)

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._fs.make_dirs(folder)
            self._fs.sync_dir(folder.parent)

    # -- derived from the log ------------------------------------------------------------

    def _rebuild_queues(self, steps: list[Step]) -> Iterator[Step]:
        if not steps:
            return
        by_queue = {(step.file.split("/")[1], int(step.file.split("/")[2])): step for step in steps}
        with (
            StoreView.open(self._root, self._config) as view,
            staging(self._root, self._fs) as made,
        ):
            queues = rebuild_queues(view, made, list(by_queue), fs=self._fs)
            for queue in put_queues_in_place(
                view, made, queues, self._quarantine, why="REBUILT", fs=self._fs
            ):
                yield by_queue.pop((queue.topic, queue.queue_id))
        yield from by_queue.values()  # the log made them right

    def _rebuild_index(self, step: Step) -> None:
        fs = self._fs
        with StoreView.open(self._root, self._config) as view, staging(self._root, fs) as made:
            rebuilt = rebuild_index(view, made, fs=fs)
            for _ in put_index_in_place(view, made, rebuilt, self._quarantine, why=step.why, fs=fs):
                pass
