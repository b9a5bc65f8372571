"""One run of ``store rebuild``: comparison with the log, plan, question, execution, check."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.change_steps import carry_out, will_execute
from rmqctl.errors import NotFound, Refused
from storage.configs.journal import Journal
from storage.coordination.exclusive import alone
from storage.coordination.lock_owners import find_holders
from storage.files.fs import FileSystem
from storage.files.read_files import StoreFiles
from storage.queue.written_end import written_units
from storage.readonly import StoreView
from storage.tools.quarantine import Quarantine
from storage.tools.rebuild.index import RebuiltIndexFile, plan_index, rebuild_index
from storage.tools.rebuild.old_index import index_file_names
from storage.tools.rebuild.queue import RebuiltQueue, plan_queues, rebuild_queues
from storage.tools.rebuild.replacement import (
    put_index_in_place,
    put_queues_in_place,
    staging,
    unclean,
)

from .rows import RebuildRow, index_row, queue_row

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from rmqctl.cli.progress import Progress

Walked = Callable[[int, int], None]


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


def rebuild(cli: "Cli", view: StoreView, part: _Part) -> None:
    """Show what rebuilding would change and, with consent, do it."""
    root = view.root
    check: Callable[[], None] | None = None
    holders = find_holders(root)
    if will_execute(cli):
        check = refuse_beside_java(root)
        _refuse_writers(root)
    busy = bool(holders.writers) or holders.java_locked
    with cli.progress(f"comparing the {part.name} with the log", "bytes") as progress:
        rows = part.plan(view, beside_writers=busy, progress=_walked(progress))
    carry_out(
        cli,
        RebuildRow,
        rows,
        lambda: _apply(cli, root, part, rows, check),
        question=f"Replace {len(rows)} {part.name} of {root}?",
        plan_summary=[_same(part), *_left_out(part), *_quarantine(root, rows)],
    )


def _same(part: _Part) -> str:
    return f"{part.same:,} {part.name} match the log and stay as they are"


def _left_out(part: _Part) -> list[str]:
    if not part.left_out:
        return []
    return [f"index file {part.left_out} is being written and is skipped"]


def _quarantine(root: Path, rows: Sequence[RebuildRow]) -> list[str]:
    return [f"old files are moved to {root}/rmqctl/quarantine/"] if rows else []


def _refuse_writers(root: Path) -> None:
    writers = find_holders(root).writers
    if writers:
        pids = ", ".join(map(str, writers))
        raise Refused(
            f"process {pids} has {root} open for writing; "
            "stop it first ('rmqctl broker status' shows it)"
        )


def _apply(
    cli: "Cli",
    root: Path,
    part: _Part,
    plan: Sequence[RebuildRow],
    check: Callable[[], None] | None,
) -> Iterator[RebuildRow]:
    """Finish before the first row is printed, as a broken pipe must not stop it half way."""
    fs = FileSystem()
    with ExitStack() as stack:
        stack.enter_context(alone(root))
        if check is not None:
            check()
        view = stack.enter_context(StoreView.open(root))
        quarantine = Quarantine(root, cli.now_ms, fs)
        Journal(root).append(_note(cli, part, plan, quarantine), cli.now_ms)
        made = stack.enter_context(staging(root, fs))
        progress = stack.enter_context(cli.progress(f"rebuilding the {part.name}", "bytes"))
        done = part.carry_out(view, fs, made, quarantine, _walked(progress))
    yield from done
    if quarantine.folder.exists():
        cli.say(f"old files are in {quarantine.folder}")


def _note(
    cli: "Cli", part: _Part, plan: Sequence[RebuildRow], quarantine: Quarantine
) -> dict[str, Any]:
    topics = {row.topic for row in plan}
    note = change_note(cli, topic=topics.pop() if len(topics) == 1 else None, what=part.name)
    return {
        **note,
        "old": {"units": sum(row.units_before or 0 for row in plan)},
        "new": {
            "units": sum(row.units_after or 0 for row in plan),
            "files": sum(len(row.files) for row in plan),
            "quarantine": quarantine.run,
        },
    }


def _walked(progress: "Progress") -> Walked:
    def note(done: int, total: int) -> None:
        progress.total = total
        progress.advance(done - progress.count, done - progress.count)

    return note


class Queues:
    """All queues, or those of a topic, or some of them."""

    name = "queues"

    def __init__(self, topic: str | None, queue_ids: Sequence[int] | None) -> None:
        self._topic = topic
        self._queue_ids = queue_ids
        self._differing: list[RebuiltQueue] = []
        self.same = 0
        self.left_out = ""

    def plan(self, view: StoreView, *, beside_writers: bool, progress: Walked) -> list[RebuildRow]:
        """NotFound if the topic has neither a folder nor a record."""
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
        wanted = [(queue.topic, queue.queue_id) for queue in self._differing]
        queues = rebuild_queues(view, made, wanted, progress=progress, fs=fs)
        with unclean(view.root, fs):
            done = list(put_queues_in_place(view, made, queues, quarantine, fs=fs))
        files = view.files.apart()
        return [queue_row(queue)._replace(applied=_is_done(files, queue)) for queue in done]


def _is_done(files: StoreFiles, queue: RebuiltQueue) -> bool:
    row = files.queue(queue.topic, queue.queue_id)
    return row is not None and written_units(row) == (queue.next_after if row.offsets() else 0)


class Index:
    """The key index."""

    name = "index files"

    def __init__(self) -> None:
        self.same = 0
        self.left_out = ""

    def plan(self, view: StoreView, *, beside_writers: bool, progress: Walked) -> list[RebuildRow]:
        """Refused for a store without index."""
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
        files = rebuild_index(view, made, progress=progress, fs=fs)
        with unclean(view.root, fs):
            done = list(put_index_in_place(view, made, files, quarantine, fs=fs))
        return [index_row(file)._replace(applied=_is_there(view, file)) for file in done]


def _is_there(view: StoreView, file: RebuiltIndexFile) -> bool:
    return (view.root / "index" / file.name).exists() == (file.keys_after is not None)
