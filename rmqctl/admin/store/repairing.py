"""One run of ``store repair``: check, plan, question, execution, check again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from broker.config import BrokerConfig
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.change_steps import carry_out, will_execute
from rmqctl.errors import CliError, Refused
from rmqctl.exit_codes import DAMAGED
from storage.configs.journal import JOURNAL_FOLDER, Journal
from storage.coordination.exclusive import alone
from storage.coordination.lock_owners import find_holders
from storage.errors import StoreChangedError
from storage.format.names import OURS
from storage.readonly import StoreView
from storage.tools.fsck import Part, Report, fsck
from storage.tools.quarantine import QUARANTINE
from storage.tools.repair.execution import carry_out_plan
from storage.tools.repair.plan import make_plan
from storage.tools.repair.steps import Action, Plan

from .offsets import ProgressRepair
from .plan_files import compare_with, write_plan
from .rows import RepairRow, repair_row

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_OF_JOURNAL = f"{OURS}/{JOURNAL_FOLDER}/"
_MAX_FINDINGS = 1_000_000
_HOPELESS = "repair cannot fix this; the rows say what can"


def repair(
    cli: "Cli",
    view: StoreView,
    only: Sequence[str] | None,
    *,
    jobs: int,
    export: Path | None,
    expect: Path | None,
) -> None:
    """Plan and, with consent, repair. Raises errors of exit codes 4 to 8."""
    root = view.root
    execute = will_execute(cli)
    check: Callable[[], None] = refuse_beside_java(root) if execute else lambda: None
    if execute:
        _refuse_writers(root)
    parts = None if only is None else [Part(name) for name in only]
    report = _fsck(cli, view, jobs)
    plan = make_plan(view, report, cli.now_ms, parts, BrokerConfig.from_record)
    progress = ProgressRepair(view, parts)
    plan = progress.added_to(plan)
    rows = [repair_row(number, step) for number, step in enumerate(plan.steps, 1)]
    if export is not None:
        write_plan(export, rows)
    if expect is not None:
        compare_with(expect, rows)
    nothing = bool(rows) and not plan.executable
    carry_out(
        cli,
        RepairRow,
        rows,
        lambda: _apply(cli, view, plan, progress, check, jobs),
        question=f"Repair {root} in {len(plan.executable)} steps?",
        plan_summary=_plan_summary(plan),
        refusal=CliError(_HOPELESS, DAMAGED) if nothing and execute else None,
        refused_rows=_HOPELESS if nothing else "",
    )


def _refuse_writers(root: Path) -> None:
    writers = find_holders(root).writers
    if writers:
        pids = ", ".join(map(str, writers))
        raise Refused(
            f"process {pids} has {root} open for writing; "
            "stop it first ('rmqctl broker status' shows it)"
        )


def _fsck(cli: "Cli", view: StoreView, jobs: int) -> Report:
    with cli.progress("fsck", "bytes") as progress:

        def note(done: int, total: int) -> None:
            progress.total = total
            progress.advance(done - progress.count, done - progress.count)

        return fsck(
            view,
            jobs=jobs,
            progress=note,
            max_findings=_MAX_FINDINGS,
            check_broker=BrokerConfig.from_record,
        )


def _plan_summary(plan: Plan) -> list[str]:
    if not plan.executable:
        return []
    known = sum(step.lost or 0 for step in plan.steps)
    unknown = any(step.lost is None for step in plan.steps)
    more = ", and an unknown number more" if unknown else ""
    stay = "1 message stays" if known == 1 else f"{known} messages stay"
    lost = f"{stay} unreadable{more}" if known or unknown else ""
    kept = f"overwritten or removed data is kept in rmqctl/{QUARANTINE}/"
    return [sentence for sentence in (lost, kept) if sentence]


def _apply(
    cli: "Cli",
    view: StoreView,
    plan: Plan,
    progress: ProgressRepair,
    check: Callable[[], None],
    jobs: int,
) -> Iterator[RepairRow]:
    root, config = view.root, view.config
    numbers = {id(step): number for number, step in enumerate(plan.steps, 1)}
    check()
    with alone(root):
        with StoreView.open(root, config) as now:
            if now.log_max_offset() != plan.log_end:
                raise StoreChangedError(root)
        entry = change_note(cli, what="repair")
        entry["old"] = None
        entry["new"] = _counts(plan)
        of_journal = [s for s in plan.executable if s.file.startswith(_OF_JOURNAL)]
        for step in carry_out_plan(
            root, config, plan._replace(steps=of_journal), cli.now_ms
        ):  # first, so that the recovered file does not contain the entry of this repair
            yield repair_row(numbers[id(step)], step, applied=True)
        Journal(root).append(entry, cli.now_ms)
        late = (*of_journal, *(s for s in plan.steps if s.action is Action.RECOVER))
        of_files = plan._replace(steps=[s for s in plan.steps if s not in late])
        for step in carry_out_plan(root, config, of_files, cli.now_ms):
            yield repair_row(numbers[id(step)], step, applied=True)
        for step in progress.carry_out(cli):
            yield repair_row(numbers[id(step)], step, applied=True)
    for step in plan.steps:
        if step.action is Action.NONE:
            yield repair_row(numbers[id(step)], step, applied=False)
    _look_again(cli, root, jobs)


def _counts(plan: Plan) -> dict[str, int]:
    counts: dict[str, int] = {}
    for step in plan.executable:
        counts[step.action.value] = counts.get(step.action.value, 0) + 1
    return counts


def _look_again(cli: "Cli", root: Path, jobs: int) -> None:
    with StoreView.open(root) as view:
        report = _fsck(cli, view, jobs)
    if report.errors:
        raise CliError(f"{report.errors} errors are left; 'rmqctl store fsck' lists them", DAMAGED)
    if report.warnings:
        cli.warn(f"{report.warnings} warnings are left; 'rmqctl store fsck' lists them")
    else:
        cli.say("checked again: no findings are left")
