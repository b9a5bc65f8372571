"""Answering pulls (PullMessageProcessor and PullRequestHoldService of 4.9)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from storage.results import GetMessageResult, GetMessageStatus

from .errors import NoPermissionError
from .port.reading import PullRequest, PullResult, PullStatus
from .subscription import parse_subscription

if TYPE_CHECKING:
    from storage.reading.tag_filter import TagFilter
    from storage.readonly import StoreView

    from .arrivals import Arrivals
    from .groups import GroupManager
    from .port.progress import OffsetCommit
    from .topics import TopicManager

_STATUS: Final = {
    GetMessageStatus.FOUND: PullStatus.FOUND,
    GetMessageStatus.NO_MATCHED_MESSAGE: PullStatus.NO_MATCHED_MSG,
    GetMessageStatus.MESSAGE_WAS_REMOVING: PullStatus.NO_MATCHED_MSG,
    GetMessageStatus.OFFSET_FOUND_NULL: PullStatus.NO_NEW_MSG,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: PullStatus.NO_NEW_MSG,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: PullStatus.OFFSET_ILLEGAL,
    GetMessageStatus.OFFSET_TOO_SMALL: PullStatus.OFFSET_ILLEGAL,
}


def pull_status(status: GetMessageStatus, offset: int) -> PullStatus:
    """Give the answer to a pull at ``offset`` for what the store found.

    An empty queue holds nothing new at offset 0, and is the wrong place at any other.
    """
    known = _STATUS.get(status)
    if known is not None:
        return known
    return PullStatus.OFFSET_ILLEGAL if offset else PullStatus.NO_NEW_MSG


class Puller:
    """Answers pulls over one store. Safe for threads; each held pull keeps its caller's thread.

    ``note_commit`` takes the progress that a pull carries.
    """

    def __init__(
        self,
        view: Callable[[], StoreView],
        topics: TopicManager,
        groups: GroupManager,
        arrivals: Arrivals,
        note_commit: Callable[[str, OffsetCommit], None],
        *,
        max_suspend_timeout_ms: int,
    ) -> None:
        self._view = view
        self._topics = topics
        self._groups = groups
        self._arrivals = arrivals
        self._note_commit = note_commit
        self._max_suspend_timeout_ms = max_suspend_timeout_ms

    def pull(self, request: PullRequest) -> PullResult:
        """Answer a pull; see Broker.pull.

        One that is held back is answered when its queue has grown: also if nothing new matches its
        subscription, so that the client's offset moves on (the real broker looks at the hash first
        and answers such a pull within 5 s).
        """
        group = self._groups.for_use(request.consumer_group)
        if not group.consume_enable:
            raise NoPermissionError(f"group {group.group_name} may not consume: it is disabled")
        self._topics.for_pulling(request.topic, request.queue_id)
        tags = parse_subscription(request.expression, request.expression_type)
        known = self._arrivals.now() if request.suspend_timeout_ms > 0 else 0
        result = self._read(request, tags)
        if request.commit is not None:
            self._note_commit(request.consumer_group, request.commit)
        if request.suspend_timeout_ms > 0 and _may_wait(request, result):
            self._hold(request, known)
            result = self._read(request, tags)
        return PullResult(
            pull_status(result.status, request.queue_offset),
            result.next_begin_offset,
            result.min_offset,
            result.max_offset,
            result.messages,
            result.status,
        )

    def _read(self, request: PullRequest, tags: TagFilter | None) -> GetMessageResult:
        return self._view().get_message(
            request.topic,
            request.queue_id,
            request.queue_offset,
            max(1, request.max_msg_nums),
            tags=tags,
        )

    def _hold(self, request: PullRequest, known: int) -> None:
        """Come back when the queue has grown behind the offset, or the time is over."""
        suspend_ms = min(request.suspend_timeout_ms, self._max_suspend_timeout_ms)
        deadline = time.monotonic() + suspend_ms / 1000
        topic, queue_id, offset = request.topic, request.queue_id, request.queue_offset
        while not self._arrivals.closed:
            left_ms = int((deadline - time.monotonic()) * 1000)
            if left_ms <= 0:
                return
            known = self._arrivals.wait(known, left_ms, topic)
            if self._view().max_offset_in_queue(topic, queue_id) > offset:
                return


def _may_wait(request: PullRequest, result: GetMessageResult) -> bool:
    """Tell whether a pull found nothing *yet*."""
    offset = request.queue_offset
    return (
        pull_status(result.status, offset) is PullStatus.NO_NEW_MSG
        and result.next_begin_offset == offset
    )
