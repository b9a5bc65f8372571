"""resetOffsetByTime (ResetOffsetByTimeCommand of 4.9.8): its rule, its words, its rows."""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from broker.validation import check_group
from rmqctl.parse.lists import parse_queues
from storage.read.by_time import Boundary

from .apply import ChangeForm, ChangeRun
from .boundaries import parse_boundary, warn_of_future
from .plan import Describer, Step
from .queues import TopicChoice, chosen_places, stands
from .reset_targets import Scope, to_latest, to_time
from .rows import ResetByTimeRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli
    from storage.configs.progress_table import ProgressTable


class ResetByTime(NamedTuple):
    """What one call asks for. ``timestamp`` None: the end of each queue (mqadmin's now, -1)."""

    group: str
    choice: TopicChoice
    timestamp: int | None
    boundary: Boundary
    force: bool

    @classmethod
    def parse(
        cls,
        cli: "Cli",
        group: str,
        topic: str,
        timestamp: str,
        queue: str | None,
        boundary: str,
        *,
        force: bool,
    ) -> Self:
        """Read the options. UsageProblem for malformed ones."""
        check_group(group)
        queues = None if queue is None else cli.parsed("--queue", parse_queues, queue)
        rule = cli.parsed("--boundary", parse_boundary, boundary)
        moment = _time(cli, timestamp)
        if moment is not None:
            warn_of_future(cli, "--timestamp", moment, rule)
        return cls(group, TopicChoice(topic, queues), moment, rule, force)

    def carry_out(self, cli: "Cli", broker: "EmbeddedBroker") -> None:
        """Plan it, show it, ask, do it."""
        change_run = ChangeRun(cli, broker, execute_by_default=True)
        if self.group not in change_run.groups:
            cli.warn(f"group {self.group} has no progress anywhere yet: it gets its first")
        describe = Describer(broker.view, broker.name, cli.now_ms, full=False)

        def planned(step: Step) -> ResetByTimeRow:
            lower = describe.lower(step)
            notes = [note for note in (step.reset_target.note, step.stand.note) if note]
            if not step.reset_target.stays and lower is not None and lower != step.target:
                notes.append(f"lower bound is {lower}")
            return ResetByTimeRow(
                broker.name,
                step.stand.place.queue_id,
                step.stand.offset,
                step.target,
                describe.lands_on(step),
                "; ".join(notes) or None,
            )

        def done(_: Step, row: Any, old: int | None, applied: bool | None) -> Any:
            return row._replace(old_offset=old, note="not done" if applied is False else row.note)

        steps = self.steps(broker, change_run.progress, cli.now_ms)
        change_run.carry_out(steps, ChangeForm(ResetByTimeRow, planned, ResetByTimeRow, done))

    def steps(
        self, broker: "EmbeddedBroker", progress: "ProgressTable", now_ms: int | None = None
    ) -> list[Step]:
        """Where each queue goes. NotFound for an unknown topic or queue."""
        places = chosen_places(broker, progress, [self.group], [self.choice])
        scope = self._scope(broker, now_ms)
        return [self._kept(Step(stand, scope(stand))) for stand in stands(broker, progress, places)]

    def _scope(self, broker: "EmbeddedBroker", now_ms: int | None) -> Scope:
        if self.timestamp is None:
            return to_latest
        return to_time(broker.view, self.timestamp, self.boundary, now_ms)

    def _kept(self, step: Step) -> Step:
        """Without force progress goes back or stays (ConsumerManageProcessor's rule)."""
        old, target = step.stand.offset, step.target
        if self.force or (old is not None and target is not None and target <= old):
            return step
        why = "kept: it has no progress" if old is None else f"kept: {target} is ahead"
        return step._replace(reset_target=step.reset_target._replace(note=why, stays=True))


def _time(cli: "Cli", text: str) -> int | None:
    """Epoch ms; None for mqadmin's ``now`` and ``-1``."""
    if text.strip() in {"now", "-1"}:
        return None
    return cli.time("--timestamp", text)
