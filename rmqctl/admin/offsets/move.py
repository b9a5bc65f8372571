"""Moving offsets without opening the store for writing: no recovery, no services.

The order of the steps is that of broker.offset.offset_move.
"""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.errors import OffsetChangedError
from broker.members.living import members_by_group
from broker.offset.offset_move import MovedOffsets, move_offsets_of_store
from rmqctl.errors import Refused

from .queues import QueueId, committed

if TYPE_CHECKING:
    from storage.configs.progress import Moves, ProgressKey
    from storage.configs.progress_table import QueueProgress

    from .plan import Step

Check = Callable[["Moves"], None]


class ForbiddenWays(NamedTuple):
    """The ways that no queue may go."""

    no_forward: bool = False
    no_backward: bool = False

    def refusal(self, queue: QueueId, distance: int | None, now: str = "") -> Refused | None:
        """The error for a queue that would go such a way; ``now`` says where the queue is."""
        if self.no_forward and (distance or 0) > 0:
            way, option = f"forward by {distance}", "--no-forward"
        elif self.no_backward and (distance or 0) < 0:
            way, option = f"back by {-(distance or 0)}", "--no-backward"
        else:
            return None
        return Refused(f"{queue} {now}would go {way}, and {option} was given")

    def check(
        self,
        steps: "Collection[Step]",
        now_of: "Callable[[ProgressKey], QueueProgress]",
    ) -> None:
        """Raise the refusal of a queue that would go such a way from where it is now."""
        for step in steps:
            if step.reset_target.stays:
                continue
            queue = step.position.queue
            now = committed(now_of(queue.key))
            moved = step._replace(position=step.position._replace(offset=now))
            refusal = self.refusal(queue, moved.distance, f"is at {_word(now)} now and ")
            if refusal is not None:
                raise refusal


EVERY_WAY: Final = ForbiddenWays()
"""None is forbidden."""


def write_moves(
    root: Path,
    targets: Mapping[QueueId, int | None],
    note: Mapping[str, Any],
    check: Check,
    java_check: Callable[[], None],
) -> MovedOffsets:
    """Move offsets of any groups, all or nothing; on the device when this returns.

    Java's consumerOffset.json is written too, and running consumers are notified. ``java_check``
    and ``check`` may refuse by raising. Raises StoreInUseError, WriteLockTimeoutError and
    StoreNotWritableError; nothing has changed then.
    """
    keys = {queue.key: offset for queue, offset in targets.items()}
    return move_offsets_of_store(root, keys, note, _now_ms, before=java_check, check=check)


def unchanged(
    steps: "Collection[Step]",
    live: Collection[str],
    now_of: "Callable[[ProgressKey], QueueProgress]",
) -> None:
    """OffsetChangedError if a queue of a plan has another offset now than the plan found.

    Consumers of ``live`` groups go on committing, which is no move.
    """
    for step in steps:
        position = step.position
        if step.reset_target.stays:
            continue
        now = now_of(position.queue.key)
        offset = committed(now)
        still = offset == position.offset or position.queue.group in live
        if now.generation != position.generation or not still:
            raise changed(position.queue, position.offset, offset)


def changed(queue: QueueId, seen: int | None, now: int | None) -> OffsetChangedError:
    """The error that says that an offset is not the one that was seen."""
    return OffsetChangedError(
        f"{queue} was at {_word(seen)} and is at {_word(now)} now; "
        "nothing was changed, look at the plan again"
    )


def members_of(root: Path, groups: Collection[str]) -> dict[str, list[str]]:
    """The ids of the clients that run in some groups, read from the store's files."""
    members = members_by_group(root)
    return {
        group: [member.client.client_id for member in members[group]]
        for group in groups
        if group in members
    }


class RunningGroups(NamedTuple):
    """The groups of a call with --no-live, of which none may run; none of a call without."""

    root: Path
    groups: Collection[str] = ()

    def refusal(self) -> Refused | None:
        """The error for a group that runs now."""
        live = members_of(self.root, self.groups) if self.groups else {}
        if not live:
            return None
        return Refused(f"group {min(live)} has running consumers, and --no-live was given")

    def check(self) -> None:
        """Raise the refusal."""
        refusal = self.refusal()
        if refusal is not None:
            raise refusal


def _word(offset: int | None) -> str:
    return "no offset" if offset is None else str(offset)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
