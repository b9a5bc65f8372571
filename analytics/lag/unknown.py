"""The unknown parts of a group's lag in a topic, and the reasons, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .totals import QueueLag, all_known, is_unknown

_NAMED = 3
"""Queues that a reason names."""


def unknown_parts(queues: Sequence[QueueLag]) -> list[str]:
    """Name the queues whose lag is unknown, and why; empty if all are known."""
    if all_known(queues):  # mostly
        return []
    return [*_no_progress(queues), *_ahead(queues)]


def unknown_ages(queues: Sequence[QueueLag]) -> list[str]:
    """Name the queues whose age of the oldest unread message is unknown, though the lag is
    known."""
    unread = [
        queue
        for queue in queues
        if queue.unread.lag
        and queue.unread.first_unread is not None
        and queue.oldest_unread_timestamp is None
    ]
    if not unread:
        return []
    return [f"the oldest unread message of {_named(unread, lambda _: '')} cannot be read"]


def unknown_risks(queues: Sequence[QueueLag]) -> list[str]:
    """Name the queues of which it is unknown when the oldest unread message may be deleted, though
    the lag is known."""
    unread = [queue for queue in queues if is_unknown_risk(queue)]
    if not unread:
        return []
    of = _named(unread, lambda _: "")
    return [f"it is unknown when the oldest unread message of {of} may be deleted"]


def is_unknown_risk(queue: QueueLag) -> bool:
    """Whether something is unread, and neither its record nor its place in the log is known."""
    return (
        queue.unread.first_unread is not None
        and queue.unread.lag is not None
        and queue.oldest_unread_timestamp is None
        and queue.risk_timestamp is None
    )


def _no_progress(queues: Sequence[QueueLag]) -> Iterator[str]:
    none = [q for q in queues if is_unknown(q.unread) and q.unread.committed_offset is None]
    if none:
        yield f"no progress in {_named(none, _holds)}"


def _holds(queue: QueueLag) -> str:
    count = queue.unread.max_offset - queue.unread.min_offset
    return f" ({count:,} message{'' if count == 1 else 's'} there)"


def _ahead(queues: Sequence[QueueLag]) -> Iterator[str]:
    ahead = [queue for queue in queues if queue.unread.ahead]
    if ahead:
        where = _named(ahead, lambda queue: f" (by {queue.unread.ahead:,})")
        yield f"progress beyond the end in {where}"


def _named(queues: Sequence[QueueLag], detail: Callable[[QueueLag], str]) -> str:
    shown = ", ".join(f"{queue.queue_id}{detail(queue)}" for queue in queues[:_NAMED])
    more = len(queues) - _NAMED
    noun = "queue" if len(queues) == 1 else "queues"
    return f"{noun} {shown}" + (f" and {more} more" if more > 0 else "")
