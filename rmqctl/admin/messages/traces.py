"""The trace of a message in a trace topic."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from client.trace.trace import TraceType, TraceView, views_of
from rmqctl.admin.messages.search.keys import read_all, with_key
from storage.format.errors import BodyError

from .rows import TraceRow

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.readonly import StoreView


def trace_rows(cli: "Cli", view: "StoreView", msg_id: str, trace_topic: str) -> list[TraceRow]:
    """All records of a message's trace, oldest first; without the limit of 64 of
    queryMsgTraceById."""
    return sorted(_rows(cli, view, msg_id, trace_topic), key=lambda row: row.at_timestamp)


def _rows(cli: "Cli", view: "StoreView", msg_id: str, trace_topic: str) -> Iterator[TraceRow]:
    hits = with_key(cli, view, msg_id, [trace_topic])
    for message in read_all(cli, view, hits.offsets):
        try:
            yield from map(_row, views_of(msg_id, message))
        except BodyError as error:
            cli.left_out(f"the trace message {message.offset_msg_id} cannot be read: {error}")


def _row(view: TraceView) -> TraceRow:
    before = view.trace_type is TraceType.SubBefore
    after = view.trace_type is TraceType.SubAfter
    consumed = before or after
    state = view.transaction_state
    return TraceRow(
        view.timestamp,
        str(view.trace_type),
        view.group_name,
        view.success,
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
