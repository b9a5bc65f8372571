"""The trace of a message in a trace topic."""

from typing import TYPE_CHECKING

from client.trace.trace import TraceType, TraceView, in_order, views_of
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.messages.search.keys import find_key, read_messages
from rmqctl.admin.scan_progress import OnProgress, no_progress
from storage.format.errors import BodyError
from storage.format.message import TRACE_TOPIC

from .rows import TraceRow

if TYPE_CHECKING:
    from storage.readonly import StoreView


def trace(
    view: "StoreView",
    message_id: str,
    trace_topic: str = TRACE_TOPIC,
    *,
    left_out: Warn = no_warning,
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
) -> list[TraceRow]:
    """All records of a message's trace, oldest first; empty if there are none.

    One without a time comes after the SubBefore of its call, or as the last one.
    There is no limit of 64 as in queryMsgTraceById.
    """
    hits = find_key(view, message_id, [trace_topic], jobs=jobs, on_progress=on_progress)
    views: list[TraceView] = []
    for message in read_messages(view, hits.offsets, left_out):
        try:
            views += views_of(message_id, message)
        except BodyError as error:
            left_out(f"the trace message {message.offset_msg_id} cannot be read: {error}")
    return list(map(_row, in_order(views)))


def _row(view: TraceView) -> TraceRow:
    before = view.trace_type is TraceType.SubBefore
    after = view.trace_type is TraceType.SubAfter
    consumed = before or after
    state = view.transaction_state
    return TraceRow(
        view.timestamp or None,
        str(view.trace_type),
        view.group_name or None,
        view.success if after or view.trace_type is TraceType.Pub else None,
        view.cost_ms if after or view.trace_type is TraceType.Pub else None,
        view.client_host,
        view.retry_times if before else None,
        None if consumed else view.topic,
        view.msg_id,
        view.tags,
        view.keys,
        view.store_host or None,
        view.offset_msg_id or None,
        view.request_id or None,
        view.context_code if after and view.context_code >= 0 else None,
        None if state is None else state.name,
    )
