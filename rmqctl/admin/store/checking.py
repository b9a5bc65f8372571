"""One run of ``store fsck``: its start, its progress, and its summary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.errors import NotFound
from storage.tools.fsck import Part, Report, fsck

from .fsck_place import FsckPlace

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli
    from storage.readonly import StoreView


class FsckPlan(NamedTuple):
    """The options of a check."""

    parts: Sequence[str] | None
    topics: Sequence[str] | None
    from_timestamp: int | None
    jobs: int
    fast: bool
    resume: bool


def run_fsck(cli: "Cli", broker: "EmbeddedBroker", plan: FsckPlan) -> Report:
    """Check the store; NotFound for an unknown topic.

    If it is interrupted, its position is stored for ``--resume``.
    """
    from broker.config import BrokerConfig

    view = broker.view
    for topic in plan.topics or ():
        if broker.topic(topic) is None:
            raise NotFound(f"topic {topic} does not exist in {view.root}")
    place = FsckPlace(cli.environ, view.root)
    start = _start(cli, view, plan, place)
    first = max(start, view.log_min_offset())
    first -= first % view.config.mapped_file_size_commit_log  # whole files are checked
    reached = first
    with cli.progress("fsck", "bytes") as progress:

        def note(done: int, total: int) -> None:
            nonlocal reached
            progress.total = total
            reached = first + done
            progress.advance(done - progress.count, done - progress.count)

        try:
            report = fsck(
                view,
                only=None if plan.parts is None else [Part(name) for name in plan.parts],
                topics=plan.topics,
                start=start,
                fast=plan.fast,
                jobs=plan.jobs,
                progress=note,
                check_broker=BrokerConfig.from_record,
            )
        except Exception:
            raise
        except BaseException:  # Ctrl-C, a signal, the time limit
            if reached > first and place.keep(reached):
                cli.say(f"stopped at log position {reached}; --resume continues there")
            raise
    place.forget()
    cli.say(_summary(report))
    return report


def _start(cli: "Cli", view: "StoreView", plan: FsckPlan, place: FsckPlace) -> int:
    """The commit log offset of the start."""
    if plan.from_timestamp is not None:
        return file_at_time(view, plan.from_timestamp)
    if plan.resume:
        kept = place.read()
        if kept is None:
            cli.say("no check of this store was interrupted; checking the whole store")
        elif view.log_min_offset() <= kept <= view.log_max_offset():
            cli.say(f"continuing at log position {kept}; the log before it is not checked again")
            return kept
        else:
            cli.say(f"log position {kept} is gone; checking the whole store")
    return 0


def file_at_time(view: "StoreView", timestamp: int) -> int:
    """First offset of the newest log file that begins before a store time, else 0.

    A file whose first record cannot be read is skipped; an older one is used.
    """
    size = view.config.mapped_file_size_commit_log
    end = view.log_max_offset()
    offset = end - end % size
    while offset > view.log_min_offset():
        first = view.look_message_by_offset(offset)
        if first is not None and first.store_timestamp < timestamp:
            return offset
        offset -= size
    return 0


def _summary(report: Report) -> str:
    checked = report.checked
    observed = (
        f"{checked.records:,} records, {checked.units:,} units, {checked.index_entries:,} index "
        f"entries, {checked.offsets:,} offsets, {checked.files:,} files"
    )
    left_out = f" ({report.left_out:,} further findings not listed)" if report.left_out else ""
    counts = f"{report.errors} errors, {report.warnings} warnings"
    hint = "; 'rmqctl explain CODE' explains a finding" if report.findings else ""
    return f"checked {observed}: {counts}{left_out}{hint}"
