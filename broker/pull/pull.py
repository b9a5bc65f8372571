"""Answering pulls (PullMessageProcessor of 4.9); held ones: broker.pull.pull_request_hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from broker.api.members import MessageModel
from broker.api.pull import PullRequest, PullResult, PullStatus
from broker.errors import BrokerError, NoPermissionError, ResponseCode
from broker.filter.subscription import SUB_ALL, TAG, message_filter
from storage.configs.topics import PERM_READ
from storage.format.message import RETRY_GROUP_TOPIC_PREFIX
from storage.results import GetMessageStatus

from .pull_request_hold import Answer, HeldPulls, leave

if TYPE_CHECKING:
    from broker.api.members import HeartbeatData, SubscriptionData
    from broker.api.offsets import OffsetCommit
    from broker.config import BrokerConfig
    from broker.members.group_table import GroupTable
    from broker.tables.groups import GroupManager
    from broker.tables.topics import TopicManager
    from storage.configs.subscription_groups import SubscriptionGroupConfig
    from storage.read.message_filter import MessageFilter
    from storage.readonly import StoreView

    from .message_arrival import MessageArrivals

_STATUS: Final = {
    GetMessageStatus.FOUND: PullStatus.FOUND,
    GetMessageStatus.NO_MATCHED_MESSAGE: PullStatus.NO_MATCHED_MSG,
    GetMessageStatus.MESSAGE_WAS_REMOVING: PullStatus.NO_MATCHED_MSG,
    GetMessageStatus.OFFSET_FOUND_NULL: PullStatus.NO_NEW_MSG,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: PullStatus.NO_NEW_MSG,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: PullStatus.OFFSET_ILLEGAL,
    GetMessageStatus.OFFSET_TOO_SMALL: PullStatus.OFFSET_ILLEGAL,
}
_new: Final = tuple.__new__


def pull_status(status: GetMessageStatus, offset: int) -> PullStatus:
    """Give the answer to a pull at ``offset`` for the store's result.

    An empty queue has nothing new at offset 0; any other offset is outside of it.
    """
    known = _STATUS.get(status)
    if known is not None:
        return known
    return PullStatus.OFFSET_ILLEGAL if offset else PullStatus.NO_NEW_MSG


class Puller:
    """Answers pulls over one store. Safe for threads.

    ``group_table`` gives a group's members and subscriptions; ``note_commit`` takes the progress
    that a pull carries; ``note_moved`` is called for pulls outside of their queue, with the offset
    to go on from.
    """

    def __init__(
        self,
        config: BrokerConfig,
        view: Callable[[], StoreView],
        topics: TopicManager,
        groups: GroupManager,
        arrivals: MessageArrivals,
        *,
        group_table: Callable[[str], GroupTable | None],
        note_commit: Callable[[str, OffsetCommit], None],
        note_moved: Callable[[PullRequest, int], None],
    ) -> None:
        self._config = config
        self._view = view
        self._topics = topics
        self._groups = groups
        self._group_table = group_table
        self._note_commit = note_commit
        self._note_moved = note_moved
        self.held = HeldPulls(
            view,
            arrivals,
            self._answer,
            notified=config.long_polling_enable,
        )

    def pull(self, request: PullRequest) -> PullResult:
        """Answer a pull; see Broker.pull."""
        if request.suspend_timeout_ms <= 0:
            tags, _ = self._admit(request)
            return self._first_answer(request, tags)
        answers: SimpleQueue[PullResult | Exception] = SimpleQueue()
        self._pull(request, answers.put)
        answer = answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pull_async(self, request: PullRequest, answer: Answer) -> None:
        """Answer a pull now or later; see Broker.pull_async."""
        try:
            self._pull(request, answer)
        except Exception as error:  # noqa: BLE001 - an answer like any other
            leave(answer(error))

    def answer_outdated(self, data: HeartbeatData) -> None:
        """Answer the held pulls of a client that were made by other subscriptions than it has now:
        it pulls again."""
        wanted = {
            (consumer.group_name, item.topic): (item.sub_string, item.expression_type)
            for consumer in data.consumers
            for item in consumer.subscriptions
        }

        def is_outdated(request: PullRequest) -> bool:
            if not request.sub_version or request.client_id != data.client_id:
                return False  # of no subscription that heartbeats tell
            asked = (request.expression, request.expression_type)
            return wanted.get((request.consumer_group, request.topic), asked) != asked

        self.held.answer_soon(is_outdated)

    def _pull(self, request: PullRequest, answer: Answer) -> None:
        tags, (expression, kind) = self._admit(request)
        result = self._first_answer(request, tags)
        if request.suspend_timeout_ms > 0 and _may_wait(request, result):
            suspend_ms = min(request.suspend_timeout_ms, self._config.max_suspend_timeout_ms)
            if not self._config.long_polling_enable:
                suspend_ms = self._config.short_polling_time_mills
            asked = request._replace(expression=expression, expression_type=kind)
            self.held.hold(asked, tags, answer, suspend_ms)
        else:
            leave(answer(result))

    def _first_answer(self, request: PullRequest, tags: MessageFilter | None) -> PullResult:
        """Read, and take the progress of the pull: a held pull's is not taken twice."""
        result = self._answer(request, tags)
        if request.commit is not None:
            self._note_commit(request.consumer_group, request.commit)
        return result

    def _answer(self, request: PullRequest, tags: MessageFilter | None) -> PullResult:
        found = self._view().get_message(
            request.topic,
            request.queue_id,
            request.queue_offset,
            max(1, request.max_msg_nums),
            tags=tags,
            pulls=request.pulls,
            fields=request.fields,
        )
        status = _STATUS.get(found.status)
        if status is None:
            status = pull_status(found.status, request.queue_offset)
        if status is PullStatus.OFFSET_ILLEGAL:
            self._note_moved(request, found.next_begin_offset)
        return _new(
            PullResult,
            (
                status,
                found.next_begin_offset,
                found.min_offset,
                found.max_offset,
                found.messages,
                found.status,
                0,
                found.rows,
            ),
        )

    # -- permissions --------------------------------------------------------------------------

    def _admit(self, request: PullRequest) -> tuple[MessageFilter | None, tuple[str, str]]:
        """Check a pull in the order of PullMessageProcessor; gives its filter, and the expression
        and its type that it is made from."""
        if not self._config.broker_permission & PERM_READ:
            raise NoPermissionError(f"broker {self._config.broker_name} may not be read")
        group = self._groups.for_use(request.consumer_group)
        if not group.consume_enable:
            raise NoPermissionError(f"group {group.group_name} may not consume: it is disabled")
        self._topics.for_pulling(request.topic, request.queue_id)
        expression, kind = request.expression, request.expression_type
        if expression is None:
            subscription = self._registered(request, group)
            expression, kind = subscription.sub_string, subscription.expression_type
        found: MessageFilter | None = None
        if expression != SUB_ALL or kind != TAG:
            enabled = bool(self._config.enable_property_filter)
            found = message_filter(expression, kind, enable_property_filter=enabled)
        if request.topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and self._config.filter_support_retry:
            from broker.filter.message_filter import RetryFilter

            found = RetryFilter(lambda: self._subscriptions(request.consumer_group))
        return found, (expression, kind)

    def _subscriptions(self, group: str) -> Mapping[str, SubscriptionData]:
        table = self._group_table(group)
        return {} if table is None else table.subscriptions

    def _registered(
        self, request: PullRequest, config: SubscriptionGroupConfig
    ) -> SubscriptionData:
        """Find the group's registered subscription to the topic."""
        group = request.consumer_group
        table = self._group_table(group)
        if table is None:
            raise BrokerError(
                f"group {group} has no members, so it has no subscription",
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
            )
        if table.message_model is MessageModel.BROADCASTING and not config.consume_broadcast_enable:
            raise NoPermissionError(f"group {group} may not consume by broadcasting")
        found = table.subscriptions.get(request.topic)
        if found is None:
            raise BrokerError(
                f"group {group} has not subscribed to topic {request.topic}",
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
            )
        if found.sub_version < request.sub_version:
            raise BrokerError(
                f"the subscription of group {group} to topic {request.topic} is older than "
                "the pull's: its heartbeat has not come yet",
                ResponseCode.SUBSCRIPTION_NOT_LATEST,
            )
        return found


def _may_wait(request: PullRequest, result: PullResult) -> bool:
    """Return whether a pull found nothing *yet*."""
    return (
        result.pull_status is PullStatus.NO_NEW_MSG
        and result.next_begin_offset == request.queue_offset
    )
