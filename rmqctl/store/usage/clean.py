"""``store clean``: deletes expired files, as RocketMQ's cleaning services do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rmqctl.admin.journal_entry import change_note
from rmqctl.admin.next_deletions import Progress, expired, unread_by, within
from rmqctl.cli.change_steps import carry_out
from rmqctl.cli.opening import open_for_writing
from storage.configs.journal import Journal
from storage.format.names import COMMITLOG, file_name

from .rows import CleanedFile, CleanedFileDone, FileKind

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli


def carry_out_clean(cli: "Cli", broker: "EmbeddedBroker", progress: Progress) -> None:
    """Plan, show, ask, delete. ``broker`` is open for reading; deletion opens the store itself."""
    plan = _plan(broker, progress, cli.now_ms)
    root = broker.view.root
    unread = sorted({group for row in plan for group in row.unread_by})
    plan_summary = [f"not read by {', '.join(unread)}, which will lose messages"] if unread else []
    if plan:
        plan_summary.append("queue and index files that refer only to these are deleted, too")

    def apply() -> Iterator[Any]:
        left = {row.file: row for row in plan}
        with open_for_writing(cli) as writer:
            store = writer.store
            assert store is not None
            Journal(root).append(
                {**change_note(cli, what="clean"), "old": sorted(left), "new": None},
                cli.now_ms,
            )
            while True:
                cleaned = store.clean(manual=True)
                for name in cleaned.log_files:
                    row = left.pop(name, None)
                    yield CleanedFileDone(*(row or _unplanned(name, FileKind.LOG)), True)
                for name in cleaned.queue_files:
                    yield CleanedFileDone(*_unplanned(name, FileKind.QUEUE), True)
                for name in cleaned.index_files:
                    yield CleanedFileDone(*_unplanned(name, FileKind.INDEX), True)
                if not cleaned.log_files:
                    break
        for row in left.values():
            yield CleanedFileDone(*row, not (root / row.file).exists())

    carry_out(
        cli,
        CleanedFile,
        plan,
        apply,
        question=f"Delete {len(plan)} file{'s' if len(plan) != 1 else ''} of the log?",
        plan_summary=plan_summary,
        result_type=CleanedFileDone,
    )


def _plan(broker: "EmbeddedBroker", progress: Progress, now_ms: int) -> list[CleanedFile]:
    view = broker.view
    size = view.config.mapped_file_size_commit_log
    rows = []
    for file in expired(view, now_ms):
        path = view.root / COMMITLOG / file_name(file.first)
        status = path.stat()
        ends: dict[str, dict[int, int]] = {}
        messages = 0
        for topic, queue_id, begin, end in within(view, file.first, file.first + size):
            messages += end - begin
            ends.setdefault(topic, {})[queue_id] = end
        groups = {group for topic, of in ends.items() for group in unread_by(progress, topic, of)}
        rows.append(
            CleanedFile(
                f"{COMMITLOG}/{path.name}",
                FileKind.LOG,
                status.st_blocks * 512,
                status.st_mtime_ns // 1_000_000,
                messages,
                sorted(groups),
            )
        )
    return rows


def _unplanned(name: str, kind: FileKind) -> CleanedFile:
    return CleanedFile(name, kind, None, None, None, [])
