"""One run of ``store fsck``: where it starts, its progress, and its summary on stderr."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.admin import store
from rmqctl.cli.paths import base_folder
from storage.counted import counted

from .phases import Phases

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli
    from storage.tools.fsck import Report
    from storage.tools.fsck.kept_part import KeptPart


class FsckPlan(NamedTuple):
    """The options of a check."""

    parts: Sequence[str] | None
    topics: Sequence[str] | None
    from_timestamp: int | None
    jobs: int
    fast: bool
    resume: bool


def run_fsck(cli: "Cli", broker: "EmbeddedBroker", plan: FsckPlan) -> "Report":
    """Check the store; NotFound for an unknown topic.

    If a check of the whole store is interrupted, what it has found and its position are stored for
    ``--resume``. A check of parts, topics or the newest files leaves them as they are.
    """
    view = broker.view
    folder = base_folder(cli.environ, "XDG_STATE_HOME", ".local/state") / "rmqctl" / "fsck"
    place = store.CheckPlace(folder, view.root)
    kept = place.read() if plan.resume else None
    is_whole = not plan.fast and all(
        limit is None for limit in (plan.parts, plan.topics, plan.from_timestamp)
    )
    check = store.check(
        view,
        broker,
        parts=plan.parts,
        topics=plan.topics,
        from_timestamp=plan.from_timestamp,
        resume_from=kept,
        jobs=plan.jobs,
        fast=plan.fast,
    )
    if plan.resume:
        cli.say(_beginning(kept, resumed=check.resumed))
    try:
        with Phases(cli) as phase:
            report = check.run(phase)
    except Exception:
        raise
    except BaseException:  # Ctrl-C, a signal, the time limit
        if is_whole:
            _keep(cli, place, check)
        raise
    if is_whole:
        place.forget()
    cli.say(_summary(report))
    return report


def _keep(cli: "Cli", place: store.CheckPlace, check: store.Check) -> None:
    """Store what a stopped check has found, and say where another one goes on."""
    if check.kept is not None:
        is_there = place.keep(check.kept)
    elif check.has_moved:
        place.forget()
        cli.say("stopped; so much was found that --resume cannot continue: check again")
        return
    else:
        is_there = check.resumed  # what it went on from
    if is_there:
        cli.say(f"stopped at log position {check.reached}; --resume continues there")


def _beginning(kept: "KeptPart | None", *, resumed: bool) -> str:
    if kept is None:
        return "no check of this store was interrupted; checking the whole store"
    where = f"log position {kept.position}"
    if resumed:
        return f"continuing at {where}; the log before it is not checked again"
    return f"the store has changed before {where}; checking the whole store"


def _summary(report: "Report") -> str:
    checked = report.checked
    observed = (
        f"{counted(checked.records, 'record')}, {counted(checked.units, 'unit')}, "
        f"{counted(checked.index_entries, 'index entry', 'index entries')}, "
        f"{counted(checked.offsets, 'offset')}, {counted(checked.files, 'file')}"
    )
    left_out = (
        f" ({counted(report.left_out, 'further finding')} not listed)" if report.left_out else ""
    )
    counts = f"{counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}"
    hint = "; 'rmqctl explain CODE' explains a finding" if report.findings else ""
    return f"checked {observed}: {counts}{left_out}{hint}"
