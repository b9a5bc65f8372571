"""``store recover-config``: settings of damaged files, from readable parts and other evidence."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.change_steps import carry_out, will_execute
from storage.configs.config_file import ConfigFile
from storage.configs.journal import Journal
from storage.coordination.config_lock import config_lock
from storage.tools.config_recovery.configs import (
    SalvagedFile,
    files_to_keep,
    salvage_groups,
    salvage_topics,
)
from storage.tools.config_recovery.delays import salvage_delays
from storage.tools.config_recovery.progress_files import FileState
from storage.tools.quarantine import Quarantine

from .rows import RecoveredSettingDone, RecoveredSettingRow

if TYPE_CHECKING:
    from pathlib import Path

    from rmqctl.cli.context import Cli
    from storage.readonly import StoreView


def salvaged_files(view: "StoreView", now_ms: int) -> list[SalvagedFile]:
    """The plan for each settings file that cannot be read."""
    found = (salvage_topics(view, now_ms), salvage_groups(view, now_ms), salvage_delays(view))
    return [file for file in found if file is not None]


def carry_out_config_recovery(cli: "Cli", view: "StoreView") -> None:
    """Plan, show, ask, write: each file atomically, after the damaged one was quarantined."""
    root = view.root
    java_check: Callable[[], None] = refuse_beside_java(root) if will_execute(cli) else lambda: None
    files = salvaged_files(view, cli.now_ms)
    plan = [RecoveredSettingRow(*row) for file in files for row in file.rows]
    names = [file.path.name for file in files]

    def apply() -> Iterator[Any]:
        for file in files:
            write_salvaged(cli, root, file, java_check)
            for row in file.rows:
                yield RecoveredSettingDone(*row, True)

    carry_out(
        cli,
        RecoveredSettingRow,
        plan,
        apply,
        question=f"Replace {' and '.join(names)}?",
        plan_summary=[f"{file.path.relative_to(root)} {_flaw(file)}" for file in files],
        result_type=RecoveredSettingDone,
    )


def _flaw(file: SalvagedFile) -> str:
    if file.state is FileState.WHOLE:
        return "passes over messages that wait"
    return f"is {file.state.lower()}"


def write_salvaged(
    cli: "Cli", root: "Path", file: SalvagedFile, java_check: Callable[[], None]
) -> None:
    """Quarantine the damaged file, write the journal, replace it; synced when this returns."""
    with config_lock(root):
        java_check()
        quarantine = Quarantine(root, _now_ms())
        for path in files_to_keep(file):
            quarantine.keep_copy(str(path.relative_to(root)), "recover-config")
        new = {row.name: row.value for row in file.rows}
        note = {**change_note(cli, what=file.path.name), "old": None, "new": new}
        Journal(root).append(note, _now_ms())
        ConfigFile(file.path).save(file.document)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
