"""The step of a repair that recovers lost progress, as ``recover_offsets`` does.

It is not part of the plan of the files, because messages are evidence of progress, too, and reading
them needs a broker.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.errors import StoreChangedError
from storage.files.checksum import crc_of
from storage.tools.config_recovery.progress_files import (
    FileState,
    own_progress_files,
    read_progress_files,
)
from storage.tools.fsck import Code, Part
from storage.tools.quarantine import Quarantine
from storage.tools.repair.steps import Action, Plan, Step

if TYPE_CHECKING:
    from broker.offset_recovery.recovery import Recovered
    from storage.readonly import StoreView

_WHY: Final = str(Code.CONFIG_UNREADABLE)
_DAMAGED: Final = (FileState.CUT, FileState.EMPTY)


class ProgressRepair:
    """The plan for a store's ``offsets.log``, and its execution."""

    def __init__(self, view: "StoreView", parts: Sequence[Part] | None) -> None:
        """``parts`` are the selected parts, None for all. Reads the files."""
        self._root = view.root
        self._found: list[Recovered] = []
        self._step: Step | None = None
        self._sums = self._sums_now()  # first: what is written while the files are read counts
        ours = read_progress_files(view.root).ours
        self._file = str(ours.path.relative_to(view.root))
        if (parts is None or Part.OFFSET in parts) and ours.state in _DAMAGED:
            self._found = _recovered(view)
            self._step = _step_of(self._file, self._found)

    def added_to(self, plan: Plan) -> Plan:
        """A plan with this step, if there is one, instead of the note that repair cannot fix it."""
        if self._step is None:
            return plan
        steps = [s for s in plan.steps if s.action is not Action.NONE or s.file != self._file]
        return plan._replace(steps=[*steps, self._step])

    def check(self) -> None:
        """StoreChangedError if one of the files has changed since the plan was made."""
        if self._step is not None:
            now = self._sums_now()
            for name in {**self._sums, **now}:
                if now.get(name) != self._sums.get(name):
                    raise StoreChangedError(self._root / name)

    def _sums_now(self) -> dict[str, int | None]:
        return {name: crc_of(self._root / name) for name in own_progress_files(self._root)}

    def carry_out(self, note: Mapping[str, Any], now_ms: int) -> Iterator[Step]:
        """Do it while no other process has the store open. Yields the step once synced.

        ``note`` is the head of the journal entry.
        """
        from broker.offset.offset_move import move_progress
        from broker.offset_recovery.recovery import targets_of

        if self._step is None:
            return
        targets = targets_of(self._found)
        quarantine = Quarantine(self._root, now_ms)
        if targets:
            quarantine.keep(self._file, "repair", leave_empty=True)
        else:
            for name in own_progress_files(self._root):
                quarantine.move(name, "repair")
        if targets:
            move_progress(
                ProgressFile(self._root),
                Journal(self._root),
                targets,
                note,
                lambda: now_ms,
                damaged=True,
            )
        yield self._step


def _recovered(view: "StoreView") -> "list[Recovered]":
    from broker.offset_recovery.recovery import LostProgress
    from broker.offset_recovery.retry_evidence import given_back
    from storage.format.message import TRACE_TOPIC

    from .trace_evidence import traced

    lost = LostProgress(view, [*given_back(view), *traced(view, TRACE_TOPIC)])
    queues: dict[str, set[int]] = {}
    for topic, queue_id in view.queues():
        queues.setdefault(topic, set()).add(queue_id)
    return [row for row in lost.recovered(queues) if row.offset is not None or lost.damaged]


def _step_of(file: str, found: "list[Recovered]") -> Step:
    known = [row for row in found if row.offset is not None]
    groups = len({row.place[0] for row in known})
    what = "no evidence of its content exists: it is moved to the quarantine"
    if known:
        what = (
            f"the progress of {groups} group{'' if groups == 1 else 's'} in {len(known)} "
            f"queue{'' if len(known) == 1 else 's'} is recovered from other evidence"
        )
    cost = ""
    if len(known) < len(found) or not known:
        cost = "a group without evidence of its progress starts as a new group"
    return Step(Action.RECOVER, file, None, None, _WHY, what, cost)
