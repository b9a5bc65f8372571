"""Rebuilding queues and index from the log: what differs, and replacing it."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rmqctl.admin.changes import Change, JavaCheck, Outcome
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.progress import Phase, Walked, no_phase, walked
from rmqctl.errors import NotFound, Refused
from storage.clock import now_ms as clock_ms
from storage.configs.journal import Journal
from storage.coordination.exclusive import alone
from storage.files.fs import FileSystem
from storage.queue.written_end import written_units
from storage.read.log_presence import check_log_is_here
from storage.readonly import StoreView
from storage.tools.quarantine import Quarantine

from .lock_owners import refuse_writers, writers
from .rebuild_rows import RebuildRow, index_row, queue_row

if TYPE_CHECKING:
    from storage.files.read_files import StoreFiles
    from storage.tools.rebuild.index import RebuiltIndexFile
    from storage.tools.rebuild.queue import RebuiltQueue


class _Part(Protocol):
    """A part that can be rebuilt: queues, or the index."""

    name: str
    same: int
    """Number of queues or index files that match the log, after :meth:`plan`."""
    left_out: str
    """The file that a writer is writing, which :meth:`plan` skips; "" without one."""

    def plan(self, view: StoreView, *, beside_writers: bool, progress: Walked) -> list[RebuildRow]:
        """Compare with the log."""
        ...

    def carry_out(
        self, view: StoreView, fs: FileSystem, made: Path, quarantine: Quarantine, progress: Walked
    ) -> list[RebuildRow]:
        """Rebuild the files and replace the old ones."""
        ...


class Rebuild(Change):
    """A change that replaces queue or index files that differ from the log.

    Attributes:
        old_files: the folder with the files that were replaced, once it is applied; None if no file
            was.
    """

    def __init__(
        self,
        root: Path,
        part: _Part,
        plan: Sequence[RebuildRow],
        now_ms: int,
        java_check: JavaCheck | None,
        phase: Phase,
    ) -> None:
        self._root = root
        self._part = part
        self._now_ms = now_ms
        self._java_check = java_check
        self._phase = phase
        self.old_files: Path | None = None
        topics = {row.topic for row in plan}
        topic = topics.pop() if len(topics) == 1 else None
        super().__init__(
            RebuildRow,
            plan,
            summary=_summary(root, part, plan),
            question=f"Replace {len(plan)} {part.name} of {root}?",
            entry={
                **({} if topic is None else {"topic": topic}),
                "what": part.name,
                "old": {"units": sum(row.units_before or 0 for row in plan)},
                "new": {
                    "units": sum(row.units_after or 0 for row in plan),
                    "files": sum(len(row.files) for row in plan),
                },
            },
        )

    def check(self) -> None:
        """Refused beside an rmqctl writer, StoreInUseError beside a Java broker."""
        (self._java_check or refuse_beside_java(self._root))()
        refuse_writers(self._root)

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Build new files, and put them in the place of the old ones, which are kept.

        All is done when this returns. After a kill, rebuilding once more finishes it.
        """
        from storage.tools.rebuild.replacement import staging

        java_check = self._java_check or refuse_beside_java(self._root)
        fs = FileSystem()
        with ExitStack() as stack:
            stack.enter_context(alone(self._root))
            java_check()
            view = stack.enter_context(StoreView.open(self._root))
            quarantine = Quarantine(self._root, self._now_ms, fs)
            entry = {**note, **self.entry}
            entry["new"] = {**entry["new"], "quarantine": quarantine.run}
            Journal(self._root).append(entry, self._now_ms)
            made = stack.enter_context(staging(self._root, fs))
            progress = walked(self._phase, f"rebuilding the {self._part.name}")
            done = self._part.carry_out(view, fs, made, quarantine, progress)
        if quarantine.folder.exists():
            self.old_files = quarantine.folder
        return Outcome(done)


def rebuild_queues(
    view: StoreView,
    *,
    topic: str | None = None,
    queue_ids: Sequence[int] | None = None,
    now_ms: int | None = None,
    java_check: JavaCheck | None = None,
    phase: Phase = no_phase,
) -> Rebuild:
    """Rebuild consume queues from the log, byte for byte as a broker writes them.

    All queues, or those of a topic, or some of them. NotFound if there is neither a file nor a
    message of the topic or of a named queue. Rows are RebuildRow, one for each queue that differs.
    No other process may have the store open for writing while it is applied.
    """
    return _rebuild(view, _Queues(topic, queue_ids), now_ms, java_check, phase)


def rebuild_index(
    view: StoreView,
    *,
    now_ms: int | None = None,
    java_check: JavaCheck | None = None,
    phase: Phase = no_phase,
) -> Rebuild:
    """Rebuild the key index from the log. Refused for a store without an index.

    Rows are RebuildRow, one for each index file that differs. For the rest see ``rebuild_queues``.
    """
    return _rebuild(view, _Index(), now_ms, java_check, phase)


def _rebuild(
    view: StoreView,
    part: _Part,
    now_ms: int | None,
    java_check: JavaCheck | None,
    phase: Phase,
) -> Rebuild:
    holders = writers(view.root)
    rows = part.plan(
        view,
        beside_writers=bool(holders.writers) or holders.java_locked,
        progress=walked(phase, f"comparing the {part.name} with the log"),
    )
    now = clock_ms() if now_ms is None else now_ms
    return Rebuild(view.root, part, rows, now, java_check, phase)


def _summary(root: Path, part: _Part, rows: Sequence[RebuildRow]) -> list[str]:
    sentences = [f"{part.same:,} {part.name} match the log and stay as they are"]
    if part.left_out:
        sentences.append(f"index file {part.left_out} is being written and is skipped")
    if rows:
        sentences.append(f"old files are moved to {root}/rmqctl/quarantine/")
    return sentences


class _Queues:
    """All queues, or those of a topic, or some of them."""

    name = "queues"

    def __init__(self, topic: str | None, queue_ids: Sequence[int] | None) -> None:
        self._topic = topic
        self._queue_ids = queue_ids
        self._differing: list[RebuiltQueue] = []
        self.same = 0
        self.left_out = ""

    def plan(self, view: StoreView, *, beside_writers: bool, progress: Walked) -> list[RebuildRow]:
        """NotFound if the topic has neither a folder nor a record; CorruptFileError for a log that
        lacks its last files, of which only the queues tell."""
        from storage.tools.rebuild.queue import plan_queues

        check_log_is_here(view.files.apart(), view.config)
        topic, queue_ids = self._topic, self._queue_ids
        wanted = topics = None
        if topic is not None and queue_ids is not None:
            wanted = [(topic, queue_id) for queue_id in queue_ids]
        elif topic is not None:
            topics = [topic]
        found = plan_queues(
            view, wanted, topics=topics, beside_writers=beside_writers, progress=progress
        )
        for queue in found:
            if wanted and queue.log_from is None and not queue.next_before:
                raise NotFound(
                    f"topic {queue.topic} has no queue {queue.queue_id} in {view.root}: "
                    "it has neither files nor messages"
                )
        if not found and topic is not None:
            raise NotFound(f"topic {topic} has neither queues nor messages in {view.root}")
        self._differing = [queue for queue in found if not queue.is_same]
        self.same = len(found) - len(self._differing)
        return [queue_row(queue) for queue in self._differing]

    def carry_out(
        self, view: StoreView, fs: FileSystem, made: Path, quarantine: Quarantine, progress: Walked
    ) -> list[RebuildRow]:
        """The files of the plan, to be compared again."""
        from storage.tools.rebuild.queue import rebuild_queues
        from storage.tools.rebuild.replacement import put_queues_in_place, unclean

        wanted = [(queue.topic, queue.queue_id) for queue in self._differing]
        queues = rebuild_queues(view, made, wanted, progress=progress, fs=fs)
        with unclean(view.root, fs):
            done = list(put_queues_in_place(view, made, queues, quarantine, fs=fs))
        files = view.files.apart()
        return [queue_row(queue)._replace(applied=_is_done(files, queue)) for queue in done]


def _is_done(files: "StoreFiles", queue: "RebuiltQueue") -> bool:
    row = files.queue(queue.topic, queue.queue_id)
    return row is not None and written_units(row) == (queue.next_after if row.offsets() else 0)


class _Index:
    """The key index."""

    name = "index files"

    def __init__(self) -> None:
        self.same = 0
        self.left_out = ""

    def plan(self, view: StoreView, *, beside_writers: bool, progress: Walked) -> list[RebuildRow]:
        """Refused for a store without index."""
        from storage.tools.rebuild.index import plan_index
        from storage.tools.rebuild.old_index import index_file_names

        if not view.config.message_index_enable:
            raise Refused(f"{view.root} has no index: messageIndexEnable is false")
        files = plan_index(view, beside_writers=beside_writers, progress=progress)
        differing = [file for file in files if not file.is_same]
        self.same = len(files) - len(differing)
        newest = index_file_names(view.root)[-1:]
        if beside_writers and newest and newest[0] not in {file.name for file in files}:
            self.left_out = newest[0]
        return [index_row(file) for file in differing]

    def carry_out(
        self, view: StoreView, fs: FileSystem, made: Path, quarantine: Quarantine, progress: Walked
    ) -> list[RebuildRow]:
        """All files that differ."""
        from storage.tools.rebuild.index import rebuild_index
        from storage.tools.rebuild.replacement import put_index_in_place, unclean

        files = rebuild_index(view, made, progress=progress, fs=fs)
        with unclean(view.root, fs):
            done = list(put_index_in_place(view, made, files, quarantine, fs=fs))
        return [index_row(file)._replace(applied=_is_there(view, file)) for file in done]


def _is_there(view: StoreView, file: "RebuiltIndexFile") -> bool:
    return (view.root / "index" / file.name).exists() == (file.keys_after is not None)
