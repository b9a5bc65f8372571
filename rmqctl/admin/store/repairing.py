"""Repairing a store by a plan, whose steps are shown before they are done."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from broker.config import BrokerConfig
from rmqctl.admin.changes import Change, JavaCheck, Outcome
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.progress import Phase, no_phase, walked
from rmqctl.errors import CliError
from rmqctl.exit_codes import DAMAGED
from storage.clock import now_ms as clock_ms
from storage.configs.journal import JOURNAL_FOLDER, Journal
from storage.coordination.exclusive import alone
from storage.counted import counted
from storage.errors import StoreChangedError
from storage.format.names import COMMITLOG, CONFIG, CONSUMEQUEUE, INDEX, OURS
from storage.readonly import StoreView
from storage.tools.quarantine import QUARANTINE
from storage.tools.repair.steps import Action, Plan, Step

from .checking import LABEL
from .lock_owners import refuse_writers
from .repair_rows import RepairRow, repair_row

if TYPE_CHECKING:
    from storage.tools.fsck import Report

    from .progress_repair import ProgressRepair

_OF_JOURNAL: Final = f"{OURS}/{JOURNAL_FOLDER}/"
_OF_MESSAGES: Final = (COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG)
_MAX_FINDINGS: Final = 1_000_000
_CANNOT_FIX: Final = "repair cannot fix this; the rows say what can"

Checked = Callable[["Report"], object]
"""Called with the report of the check after a repair that left no errors."""


def ignore_report(_: "Report") -> None:
    """Take a report and do nothing."""


class Repair(Change):
    """A change that carries out the steps of a repair.

    It is refused where no step can be carried out.
    """

    def __init__(
        self,
        view: StoreView,
        plan: Plan,
        progress: "ProgressRepair",
        now_ms: int,
        *,
        jobs: int,
        java_check: JavaCheck | None,
        phase: Phase,
        checked: Checked,
    ) -> None:
        self._root = view.root
        self._config = view.config
        self._plan_of_files = plan
        self._files = self._stats()
        self._progress = progress
        self._now_ms = now_ms
        self._jobs = jobs
        self._java_check = java_check
        self._phase = phase
        self._checked = checked
        self._numbers = {id(step): number for number, step in enumerate(plan.steps, 1)}
        fixes_none = bool(plan.steps) and not plan.executable
        super().__init__(
            RepairRow,
            [self._row(step) for step in plan.steps],
            summary=_summary(plan),
            refusals=[CliError(_CANNOT_FIX, DAMAGED)] if fixes_none else [],
            question=f"Repair {view.root} in {len(plan.executable)} steps?",
            entry={"what": "repair", "old": None, "new": _counts(plan)},
        )

    def check(self) -> None:
        """Refused beside an rmqctl writer, StoreInUseError beside a Java broker,
        StoreChangedError if the log has grown since the plan was made, or a file of its steps
        was made, replaced or written."""
        (self._java_check or refuse_beside_java(self._root))()
        refuse_writers(self._root)
        self._check_end()

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Carry out the steps as the rows are read, then check the store again.

        A row comes when its step is on the device. Steps that were done stay done if a later one
        fails. After the last row CliError (4) is raised if errors are left. Bytes that are
        overwritten or removed are kept in the quarantine.
        """
        self.refuse()
        return Outcome(self._repaired(note))

    def _repaired(self, note: Mapping[str, Any]) -> Iterator[RepairRow]:
        root, now_ms, plan = self._root, self._now_ms, self._plan_of_files
        (self._java_check or refuse_beside_java(root))()
        with alone(root):
            self._check_end()
            of_journal = [s for s in plan.executable if s.file.startswith(_OF_JOURNAL)]
            # First, so that the recovered file does not contain the entry of this repair.
            yield from self._done(of_journal)
            Journal(root).append({**note, **self.entry}, now_ms)
            late = (*of_journal, *(s for s in plan.steps if s.action is Action.RECOVER))
            yield from self._done([s for s in plan.steps if s not in late])
            for step in self._progress.carry_out(note, now_ms):
                yield self._row(step, applied=True)
        for step in plan.steps:
            if step.action is Action.NONE:
                yield self._row(step, applied=False)
        self._check_again()

    def _done(self, steps: list[Step]) -> Iterator[RepairRow]:
        from storage.tools.repair.execution import carry_out_plan

        plan = self._plan_of_files._replace(steps=steps)
        for step in carry_out_plan(self._root, self._config, plan, self._now_ms):
            yield self._row(step, applied=True)

    def _row(self, step: Step, *, applied: bool | None = None) -> RepairRow:
        return repair_row(self._numbers[id(step)], step, applied=applied)

    def _stats(self) -> dict[str, tuple[int, ...] | None]:
        """What tells whether a file that a step changes has changed; None if it is not there."""
        found: dict[str, tuple[int, ...] | None] = {}
        for step in self._plan_of_files.executable:
            if step.file.partition("/")[0] not in _OF_MESSAGES:
                continue  # to open the store writes some of the others; their steps know the sums
            try:
                info = (self._root / step.file).stat()
            except OSError:
                found[step.file] = None
            else:
                found[step.file] = info.st_ino, info.st_size, info.st_mtime_ns
        return found

    def _check_end(self) -> None:
        if self._stats() != self._files:
            raise StoreChangedError(self._root)
        self._progress.check()
        with StoreView.open(self._root, self._config) as now:
            if now.log_max_offset() != self._plan_of_files.log_end:
                raise StoreChangedError(self._root)

    def _check_again(self) -> None:
        with StoreView.open(self._root) as view:
            report = _fsck(view, self._jobs, self._phase)
        if report.errors:
            raise CliError(
                f"{counted(report.errors, 'error is', 'errors are')} left; 'rmqctl store fsck' "
                "lists what is left",
                DAMAGED,
            )
        self._checked(report)


def repair(
    view: StoreView,
    *,
    parts: Iterable[str] | None = None,
    jobs: int = 1,
    now_ms: int | None = None,
    java_check: JavaCheck | None = None,
    phase: Phase = no_phase,
    checked: Checked = ignore_report,
) -> Repair:
    """Repair what a check finds. The plan is made by a check of the whole store.

    ``parts`` repairs only some of log, queue, index, offset and config. ``jobs`` processes share
    each check. Rows are RepairRow: a row of action NONE names what repair cannot fix. ``phase``
    gets the progress of this check and of the one after the repair, whose report ``checked`` gets.
    No other process may have the store open for writing while it is applied.
    """
    from storage.tools.fsck import Part
    from storage.tools.repair.plan import make_plan

    from .progress_repair import ProgressRepair

    now = clock_ms() if now_ms is None else now_ms
    chosen = None if parts is None else [Part(name) for name in parts]
    plan = make_plan(view, _fsck(view, jobs, phase), now, chosen, BrokerConfig.from_record)
    progress = ProgressRepair(view, chosen)
    return Repair(
        view,
        progress.added_to(plan),
        progress,
        now,
        jobs=jobs,
        java_check=java_check,
        phase=phase,
        checked=checked,
    )


def _fsck(view: StoreView, jobs: int, phase: Phase) -> "Report":
    from storage.tools.fsck import fsck

    return fsck(
        view,
        jobs=jobs,
        progress=walked(phase, LABEL),
        max_findings=_MAX_FINDINGS,
        check_broker=BrokerConfig.from_record,
    )


def _summary(plan: Plan) -> list[str]:
    if not plan.executable:
        return []
    known = sum(step.lost or 0 for step in plan.steps)
    unknown = any(step.lost is None for step in plan.steps)
    more = ", and an unknown number more" if unknown else ""
    stay = "1 message stays" if known == 1 else f"{known} messages stay"
    lost = f"{stay} unreadable{more}" if known or unknown else ""
    kept = f"overwritten or removed data is kept in rmqctl/{QUARANTINE}/"
    return [sentence for sentence in (lost, kept) if sentence]


def _counts(plan: Plan) -> dict[str, int]:
    counts: dict[str, int] = {}
    for step in plan.executable:
        counts[step.action.value] = counts.get(step.action.value, 0) + 1
    return counts
