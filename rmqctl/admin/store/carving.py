"""Copying a part of a store into a new store."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqctl.admin.changes import Change, Outcome, Warn, no_warning
from rmqctl.admin.message_filter import EVERY_MESSAGE, MessageFilter
from rmqctl.admin.progress import Phase, no_phase
from rmqctl.errors import NotFound, Refused, UsageProblem
from storage.clock import now_ms as clock_ms

from .carve_rows import CarvedRow, CarvePlanRow

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.readonly import StoreView

    from .carve_run import Carving
    from .record_transform import Mask


class Carve(Change):
    """A change that creates a store from a part of another one, which is only read.

    Attributes:
        target: the folder of the new store.
        lost: messages that could not be read or masked, once it is applied.
    """

    def __init__(self, carving: "Carving", target: Path, summary: Sequence[str]) -> None:
        self._carving = carving
        self.target = target
        super().__init__(
            CarvePlanRow,
            carving.plan_rows(),
            result_type=CarvedRow,
            summary=summary,
            question=f"Create the store {target}?",
        )

    @property
    def lost(self) -> int:
        """See the class."""
        return self._carving.lost

    def check(self) -> None:
        """Refused if something is in the place of the new store."""
        _refuse_occupied(self.target)

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Create the store, as a whole or not at all; on the device when this returns.

        The view of the old store must be open. ``note`` is not used: the old store is not changed,
        and the new one begins without a journal. It can be applied once.
        """
        self.check()
        return Outcome(list(self._carving.run(self.target)))


def carve(
    view: "StoreView",
    target: Path,
    *,
    topics: Sequence[str] = (),
    groups: Sequence[str] = (),
    chosen: MessageFilter = EVERY_MESSAGE,
    mask: "Mask | None" = None,
    config: "StoreConfig | None" = None,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    phase: Phase = no_phase,
) -> Carve:
    """Copy topics, and groups with their retries, dead letters, settings and progress.

    Without ``topics``, those that the groups read. Messages keep their times, hosts, ids,
    properties, bodies and queue offsets. With a predicate in ``chosen`` offsets count from 0, and
    progress is adjusted. ``mask`` hides values. ``config`` has the file sizes of the new store
    (default: those of the old one). ``warn`` names messages that are left out, or of no use to
    consumers. UsageProblem without a topic or a group, and for a target inside the store; Refused
    for a target that exists and for internal topics; NotFound for unknown topics and groups. Rows
    are CarvePlanRow, then CarvedRow.
    """
    from .carve_plan import plan_of
    from .carve_run import Carving, progress_sentences
    from .record_transform import RecordTransform

    if not topics and not groups:
        raise UsageProblem("give topics or groups to copy")
    if target == view.root or view.root in target.parents:
        raise UsageProblem(f"{target} is inside the store; name a folder outside of it")
    _refuse_occupied(target)
    plan = plan_of(view, topics, groups, chosen)
    if not plan.topics:
        raise NotFound(f"group {', '.join(groups)} has read no topic, so there is nothing to copy")
    keeps = chosen.predicate is None
    carving = Carving(
        view,
        plan,
        RecordTransform(chosen.predicate, mask),
        keeps_offsets=keeps,
        config=config or view.config,
        now_ms=clock_ms() if now_ms is None else now_ms,
        warn=warn,
        phase=phase,
    )
    summary = [*progress_sentences(plan)]
    if not keeps:
        summary.append("the filters leave gaps, so queue offsets will count from 0")
    return Carve(carving, target, summary)


def _refuse_occupied(target: Path) -> None:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise Refused(f"{target} exists already; name a folder that is empty or does not exist")
