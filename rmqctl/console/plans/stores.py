"""Changes of the whole store: its repair, and a snapshot of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from rmqctl.admin.changes import Change, Outcome
from rmqctl.admin.store.snapshot_rows import SnapshotRow
from rmqctl.console.looks.look import Progress
from rmqctl.console.prompt import Prompt
from rmqctl.errors import CliError

from .questions import Question, Questions
from .wish import Making, Wish


def repair(store: str) -> Wish:
    """Repair what a check of the whole store finds."""

    def make(making: Making) -> Change:
        from rmqctl.admin import store as stores
        from rmqctl.console.looks.store import phase_of

        try:
            stores.refuse_writers(making.view.root)
        except CliError as error:
            making.refuse(str(error))
        is_planned = False

        def advance(progress: Progress) -> None:
            if not is_planned:  # the check after the repair is part of the change
                making.advance(progress)

        change = stores.repair(
            making.view,
            now_ms=making.now_ms,
            java_check=making.java_check,
            phase=phase_of(advance),
        )
        is_planned = True
        return change

    return Wish(
        "repair",
        "store repair",
        ("store", "repair"),
        make,
        store,
        "the store",
        ("step",),
        replaces_files=True,
    )


class PlannedSnapshot(NamedTuple):
    """A snapshot that is to be taken."""

    path: Annotated[str, "its path"]
    source: Annotated[str, "the store that it is taken from"]


class TakeSnapshot(Change):
    """A snapshot as a change. It changes nothing in the store, and is no entry of the journal."""

    def __init__(self, root: Path, target: Path, making: Making) -> None:
        self._root, self._target, self._warn = root, target, making.warn
        super().__init__(
            PlannedSnapshot,
            [PlannedSnapshot(str(target), str(root))],
            result_type=SnapshotRow,
            summary=["the store is only read; the target appears once it is whole"],
            question=f"Take a snapshot of {root} to {target}?",
        )

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Take it."""
        from rmqctl.admin import store as stores

        return Outcome([stores.take_snapshot(self._root, self._target, warn=self._warn)])


class Snapshot(Questions):
    """Where a snapshot is to be saved."""

    title = "snapshot"

    def __init__(self, store: str, target: str = "") -> None:
        self.subject = store
        help_text = "a folder that is free, or a file *.tar or *.tar.gz, outside of the store"
        super().__init__([Question(Prompt("save to: ", target), help_text)])

    def check(self, number: int) -> None:
        """See Questions."""
        if not self._text():
            raise ValueError("name a folder, or a file *.tar or *.tar.gz")

    def _text(self) -> str:
        return self.questions[0].prompt.text.strip()

    def command(self) -> str:
        """See Questions."""
        import shlex

        return shlex.join(("rmqctl", *self._words()))

    def _words(self) -> tuple[str, ...]:
        return ("store", "snapshot", "--save", self._text() or "DIR")

    def wish(self) -> Wish:
        """The snapshot."""
        from rmqctl.cli.paths import expanded

        target = expanded(self._text()).absolute()

        def make(making: Making) -> Change:
            from rmqctl.admin import store as stores

            root = making.view.root
            try:
                stores.check_target(root, target)
            except CliError as error:
                making.refuse(str(error))
            return TakeSnapshot(root, target, making)

        return Wish(
            f"snapshot to {target}",
            "store snapshot",
            self._words(),
            make,
            self.subject,
            "the store",
            ("path",),
            java=False,
        )
