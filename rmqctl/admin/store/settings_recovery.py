"""Settings of damaged files, from readable parts and other evidence."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rmqctl.admin.changes import Change, JavaCheck, Outcome
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.errors import PartlyDone
from storage.clock import now_ms as clock_ms
from storage.configs.config_file import ConfigFile
from storage.configs.journal import Journal
from storage.coordination.config_lock import config_lock
from storage.errors import RocketMQError, StoreChangedError
from storage.files.checksum import crc_of
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
    from storage.readonly import StoreView


class SettingsRecovery(Change):
    """A change that replaces settings files that cannot be read."""

    def __init__(
        self, view: "StoreView", files: Sequence[SalvagedFile], java_check: JavaCheck | None
    ) -> None:
        self._root = root = view.root
        self._files = files
        self._java_check = java_check
        names = [file.path.name for file in files]
        super().__init__(
            RecoveredSettingRow,
            [RecoveredSettingRow(*row) for file in files for row in file.rows],
            result_type=RecoveredSettingDone,
            summary=[f"{file.path.relative_to(root)} {_flaw(file)}" for file in files],
            question=f"Replace {' and '.join(names)}?",
        )

    def check(self) -> None:
        """StoreInUseError beside a Java broker; StoreChangedError if a file was written since."""
        self._check(self._files)

    def _check(self, files: Sequence[SalvagedFile]) -> None:
        (self._java_check or refuse_beside_java(self._root))()
        for file in files:
            if crc_of(file.path) != file.crc:
                raise StoreChangedError(file.path)

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Write each file atomically, after the damaged one was quarantined and a journal entry.

        Raises what ``check`` raises, and StoreNotWritableError; PartlyDone in the place of either
        where a file was replaced before.
        """
        return Outcome(self._written(note))

    def _written(self, note: Mapping[str, Any]) -> Iterator[Any]:
        for number, file in enumerate(self._files):
            try:
                self._replace(number, note)
            except (OSError, RocketMQError) as error:
                if not number:
                    raise
                names = " and ".join(one.path.name for one in self._files[:number])
                were = "was" if number == 1 else "were"
                raise PartlyDone(f"{error}; {names} {were} replaced before that") from error
            for row in file.rows:
                yield RecoveredSettingDone(*row, True)

    def _replace(self, number: int, note: Mapping[str, Any]) -> None:
        file = self._files[number]
        new = {row.name: row.value for row in file.rows}
        entry = {**note, "what": file.path.name, "old": None, "new": new}
        with config_lock(self._root):
            self._check(self._files[number:])
            quarantine = Quarantine(self._root, clock_ms())
            for path in files_to_keep(file):
                quarantine.keep(str(path.relative_to(self._root)), "recover-config")
            Journal(self._root).append(entry, clock_ms())
            ConfigFile(file.path).save(file.document)


def recover_config(
    view: "StoreView", *, now_ms: int | None = None, java_check: JavaCheck | None = None
) -> SettingsRecovery:
    """Recover topics.json, subscriptionGroup.json and delayOffset.json where they are damaged.

    From their readable parts, then their .bak, then queues, progress and retries. No row for files
    that can be read. Rows are RecoveredSettingRow, then RecoveredSettingDone.
    """
    now = clock_ms() if now_ms is None else now_ms
    found = (salvage_topics(view, now), salvage_groups(view, now), salvage_delays(view))
    return SettingsRecovery(view, [file for file in found if file is not None], java_check)


def _flaw(file: SalvagedFile) -> str:
    if file.state is FileState.WHOLE:
        return "passes over messages that wait"
    return f"is {file.state.lower()}"
