"""Moves of offsets as a change: the plan's rows, the question, the write, what was read back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from broker.offset.offset_move import progress_now
from rmqctl.admin.changes import Change, Outcome
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.errors import CliError
from storage.configs.progress import ProgressFile

from .move import (
    EVERY_WAY,
    ForbiddenWays,
    RunningGroups,
    changed,
    members_of,
    unchanged,
    write_moves,
)
from .plan import Step, targets_of
from .plan_summary import plan_summary
from .queues import QueueId, committed

if TYPE_CHECKING:
    from storage.configs.progress import Moves, ProgressKey
    from storage.configs.progress_table import QueueProgress

    from .snapshot import OffsetSnapshot


class MoveRows(NamedTuple):
    """How steps become rows: of the plan, and of the result by step, its row, the offset right
    before the write, and whether it was done (None: it was left alone)."""

    row_type: type
    planned: Callable[[Step], Any]
    result_type: type
    done: Callable[[Step, Any, int | None, bool | None], Any]


class OffsetMove(Change):
    """A change that moves offsets of groups in queues, all or none.

    ``steps`` are the queues of the plan, in the order of its rows.
    """

    def __init__(
        self,
        snapshot: "OffsetSnapshot",
        steps: Sequence[Step],
        rows: MoveRows,
        *,
        no_live: bool = False,
        forbidden: ForbiddenWays = EVERY_WAY,
        full: bool | None = None,
        refusals: Iterable[CliError] = (),
        entry: Mapping[str, Any] | None = None,
    ) -> None:
        """``no_live`` refuses where consumers run, and a queue that goes a ``forbidden`` way
        refuses, in the plan and at the write. For ``full`` see plan_summary. ``entry`` has more
        fields of the journal's entry."""
        self.steps = steps
        self._root = snapshot.root
        self._java_check = snapshot.java_check
        self._rows = rows
        self._targets = targets_of(steps)
        self._expected: Mapping[QueueId, int | None] = {}
        groups = sorted({step.position.queue.group for step in steps})
        self._live = live = members_of(self._root, groups)
        self._no_live = RunningGroups(self._root, groups if no_live else ())
        self._forbidden = forbidden
        ways = (forbidden.refusal(step.position.queue, step.distance) for step in steps)
        refusals = [*filter(None, ways), *refusals, *filter(None, [self._no_live.refusal()])]
        super().__init__(
            rows.row_type,
            [rows.planned(step) for step in steps],
            result_type=rows.result_type,
            summary=[
                *plan_summary(snapshot.view, steps, snapshot.now_ms, full=full),
                *running_sentences(live),
            ],
            refusals=refusals,
            question=_question(self._targets),
            has_effect=bool(self._targets),
            entry=entry,
        )

    def expecting(self, expected: Mapping[QueueId, int | None]) -> Self:
        """Demand that queues are at these offsets, now and at the write.

        OffsetChangedError for a queue that the plan found elsewhere.
        """
        for step in self.steps:
            queue = step.position.queue
            if queue in expected and expected[queue] != step.position.offset:
                raise changed(queue, expected[queue], step.position.offset)
        self._expected = expected
        return self

    def check(self) -> None:
        """OffsetChangedError if an offset was moved since; StoreInUseError beside a Java broker.

        Consumers that run go on committing, which is no move; Refused if a queue would go a
        forbidden way from there, or if consumers run that may not.
        """
        (self._java_check or refuse_beside_java(self._root))()
        now = progress_now(self._root)
        self._check(lambda key: now.get(*key))

    def unchanged_rows(self) -> list[Any]:
        """See Change."""
        done = self._rows.done
        pairs = zip(self.steps, self.plan, strict=True)
        return [done(step, row, step.position.offset, None) for step, row in pairs]

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Write the moves and notify running consumers; on the device when this returns.

        Raises the first refusal, OffsetChangedError, StoreInUseError, WriteLockTimeoutError and
        StoreNotWritableError; nothing has changed then.
        """
        self.refuse()
        if not self.has_effect:
            return Outcome(self.unchanged_rows())
        moved = write_moves(
            self._root,
            self._targets,
            {**note, **self.entry},
            lambda moves: self._check(lambda key: moves[key][0]),
            self._java_check or refuse_beside_java(self._root),
        )
        return Outcome(self._result(moved.moves), moved.change_id)

    def _check(self, now_of: "Callable[[ProgressKey], QueueProgress]") -> None:
        for queue, offset in self._expected.items():
            if queue in self._targets:
                now = committed(now_of(queue.key))
                if now != offset:
                    raise changed(queue, offset, now)
        self._no_live.check()
        unchanged(self.steps, self._live, now_of)
        self._forbidden.check(self.steps, now_of)

    def _result(self, moves: "Moves") -> list[Any]:
        found = ProgressFile(self._root).read()
        rows = []
        for step, row in zip(self.steps, self.plan, strict=True):
            if step.reset_target.stays:
                rows.append(self._rows.done(step, row, step.position.offset, None))
                continue
            key = step.position.queue.key
            old, new = moves[key]
            applied = found.get(*key).generation >= new.generation
            rows.append(self._rows.done(step, row, committed(old), applied))
        return rows


def running_sentences(live: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each group that runs, by its client ids."""
    return [
        f"group {group} runs ({', '.join(clients)}): it is notified, and goes on from its new "
        "offsets within a second"
        for group, clients in live.items()
    ]


def _question(targets: Mapping[QueueId, int | None]) -> str:
    groups = {queue.group for queue in targets}
    topics = {queue.topic for queue in targets}
    what = f"{len(targets)} queue{'s' if len(targets) != 1 else ''}"
    of = f"of {_names(topics, 'topics')}"
    verb = "Move" if any(offset is not None for offset in targets.values()) else "Delete"
    return f"{verb} the progress of {_names(groups, 'groups')} in {what} {of}?"


def _names(names: set[str], plural: str) -> str:
    return min(names, default="") if len(names) == 1 else f"{len(names)} {plural}"
