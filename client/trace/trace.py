"""Traces: sends and consumptions of a message, as text in messages of a trace topic.

Fields are separated by U+0001, a record ends with U+0002 (TraceDataEncoder):

Pub             time region group topic msg_id tags keys store_host body_length cost msg_type
                offset_msg_id success
SubBefore       time region group request_id msg_id retry_times keys
SubAfter        request_id msg_id cost success keys context_code time group
EndTransaction  time region group topic msg_id tags keys store_host msg_type transaction_id state
                from_check

Java's ``null`` stands for a missing value. Older clients wrote a Pub without offset_msg_id, or with
the client's host after it, and a SubAfter that ends with the keys or the context code.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.transactions import LocalTransactionState
from client.hooks import MessageType
from storage.format.errors import BodyError
from storage.format.message import TRACE_TOPIC, split_keys

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.format.message import MessageExt

logger = logging.getLogger("rmqctl.client.trace")

FIELD_SEPARATOR: Final = "\x01"
RECORD_END: Final = "\x02"
DEFAULT_REGION: Final = "DefaultRegion"
_NULL: Final = "null"
_MAX_QUERIED: Final = 64


class TraceType(StrEnum):
    """The traced event (org.apache.rocketmq.client.trace.TraceType)."""

    Pub = "Pub"
    """A message was sent."""
    SubBefore = "SubBefore"
    """A listener gets it."""
    SubAfter = "SubAfter"
    """The listener has finished it."""
    EndTransaction = "EndTransaction"
    """Its transaction ended."""


@dataclass(slots=True, kw_only=True)
class TraceBean:
    """A trace's part about one message; of a batch ``msg_id`` joins the ids with commas."""

    msg_id: str = ""
    topic: str = ""
    offset_msg_id: str = ""
    tags: str | None = None
    keys: str | None = None
    store_host: str = ""
    client_host: str = ""
    body_length: int = 0
    retry_times: int = 0
    msg_type: MessageType = MessageType.Normal_Msg
    transaction_id: str | None = None
    transaction_state: LocalTransactionState = LocalTransactionState.UNKNOW
    from_transaction_check: bool = False


@dataclass(slots=True, kw_only=True)
class TraceContext:
    """One event; ``timestamp`` and ``cost_ms`` in ms, region None where unknown.

    SubBefore and SubAfter of one call of a listener share their ``request_id``. Pub and
    EndTransaction have one bean, the others one a message. ``context_code`` is a
    ConsumeReturnType; -1 where an old record lacks it.
    """

    trace_type: TraceType
    beans: Sequence[TraceBean]
    timestamp: int = 0
    region_id: str | None = DEFAULT_REGION
    group_name: str = ""
    cost_ms: int = 0
    success: bool = True
    request_id: str = ""
    context_code: int = 0


def encode_trace(context: TraceContext) -> str:
    """Write a context as records, byte for byte as a 4.9 client does."""
    return "".join(FIELD_SEPARATOR.join(map(_text, row)) + RECORD_END for row in _rows(context))


def trace_keys(context: TraceContext) -> set[str]:
    """Give the keys by which the trace message is found: msg_ids and keys of its messages.

    A batch is found by each of its ids; in RocketMQ only by all of them, joined.
    """
    keys: set[str] = set()
    for bean in context.beans:
        keys.update(bean.msg_id.split(","))
        keys.update(split_keys(bean.keys))
    return keys


def halved(context: TraceContext) -> tuple[TraceContext, ...]:
    """Two contexts with half of the messages each; none for one message.

    The two records of a batch have half of the ids each, and all of its other fields.
    """
    beans = context.beans
    if len(beans) == 1:
        beans = _halves_of_batch(beans[0])
    middle = len(beans) // 2
    if not middle:
        return ()
    return replace(context, beans=beans[:middle]), replace(context, beans=beans[middle:])


def _halves_of_batch(bean: TraceBean) -> Sequence[TraceBean]:
    ids, offset_ids = bean.msg_id.split(","), bean.offset_msg_id.split(",")
    middle = len(ids) // 2
    return [
        replace(bean, msg_id=",".join(ids[part]), offset_msg_id=",".join(offset_ids[part]))
        for part in ((slice(middle), slice(middle, None)) if middle else ())
    ]


def decode_traces(text: str) -> list[TraceContext]:
    """Read the records of a trace message; unreadable ones are logged and left out."""
    contexts = []
    for record in text.split(RECORD_END):
        fields = record.split(FIELD_SEPARATOR)
        try:
            context = _read(fields)
        except (ValueError, IndexError) as error:
            logger.warning("a trace record cannot be read: %s %r", error, record[:200])
            continue
        if context is not None:
            contexts.append(context)
    return contexts


class TraceView(NamedTuple):
    """One line of a message's trace (TraceView of mqadmin's queryMsgTraceById).

    ``timestamp`` is 0 and ``group_name`` empty where a SubAfter lacks them, as an old one does.
    """

    trace_type: TraceType
    msg_id: str
    group_name: str
    timestamp: int
    cost_ms: int
    success: bool
    topic: str
    tags: str | None
    keys: str | None
    store_host: str
    client_host: str
    offset_msg_id: str
    retry_times: int
    context_code: int
    request_id: str
    transaction_state: LocalTransactionState | None


def views_of(msg_id: str, message: MessageExt) -> list[TraceView]:
    """Read the lines about ``msg_id`` from one trace message."""
    text = message.body.decode("utf-8", "replace")
    return [
        _view(msg_id, context, bean, message)
        for context in decode_traces(text)
        for bean in context.beans
        if msg_id in bean.msg_id.split(",")
    ]


def query_traces(
    brokers: Iterable[Broker], msg_id: str, trace_topic: str = TRACE_TOPIC
) -> list[TraceView]:
    """Look up the trace of a message on all brokers, oldest line first (queryMsgTraceById).

    A broker gives at most 64 trace messages; those whose bodies cannot be read are logged and left
    out. A trace appears some 500 ms after its event.
    """
    views: list[TraceView] = []
    for broker in brokers:
        for message in broker.query_message(trace_topic, msg_id, _MAX_QUERIED).messages:
            try:
                views += views_of(msg_id, message)
            except BodyError as error:
                logger.warning("a trace message cannot be read: %s", error)
    return in_order(views)


def in_order(views: Sequence[TraceView]) -> list[TraceView]:
    """The lines of a trace, oldest first.

    A line of unknown time comes after the SubBefore of its call, or as the last one.
    """
    begun = {
        view.request_id: view.timestamp
        for view in views
        if view.trace_type is TraceType.SubBefore and view.request_id
    }

    def key(view: TraceView) -> tuple[float, bool]:
        if view.timestamp:
            return view.timestamp, False
        return begun.get(view.request_id, math.inf), True

    return sorted(views, key=key)


def _rows(context: TraceContext) -> Iterator[tuple[object, ...]]:
    kind, group = context.trace_type, context.group_name
    for it in context.beans:
        head = (kind, context.timestamp, context.region_id, group)
        what = (it.topic, it.msg_id, it.tags, it.keys, it.store_host)
        match kind:
            case TraceType.Pub:
                cost = (it.body_length, context.cost_ms, int(it.msg_type))
                yield (*head, *what, *cost, it.offset_msg_id, context.success)
            case TraceType.SubBefore:
                yield (*head, context.request_id, it.msg_id, it.retry_times, it.keys)
            case TraceType.SubAfter:
                how = (context.cost_ms, context.success, it.keys, context.context_code)
                yield (kind, context.request_id, it.msg_id, *how, context.timestamp, group)
            case TraceType.EndTransaction:
                state = (it.transaction_id, it.transaction_state, it.from_transaction_check)
                yield (*head, *what, int(it.msg_type), *state)


def _text(value: object) -> str:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _read(fields: list[str]) -> TraceContext | None:
    """Read one record; None for an empty one and for kinds that are not known."""
    match fields[0]:
        case TraceType.Pub:
            bean = _bean(fields)
            bean.body_length = int(fields[9])
            bean.msg_type = MessageType(int(fields[11]))
            if len(fields) > 13:
                bean.offset_msg_id = fields[12]
            if len(fields) > 14:
                bean.client_host = fields[14]
            success = fields[12] if len(fields) == 13 else fields[13]
            context = _context(fields, bean)
            context.cost_ms, context.success = int(fields[10]), success == "true"
            return context
        case TraceType.SubBefore:
            bean = TraceBean(
                msg_id=fields[5], retry_times=int(fields[6]), keys=_optional(fields[7])
            )
            context = _context(fields, bean)
            context.request_id = fields[4]
            return context
        case TraceType.SubAfter:
            return TraceContext(
                trace_type=TraceType.SubAfter,
                beans=[TraceBean(msg_id=fields[2], keys=_optional(fields[5]))],
                request_id=fields[1],
                cost_ms=int(fields[3]),
                success=fields[4] == "true",
                context_code=int(fields[6]) if len(fields) > 6 else -1,
                timestamp=int(fields[7]) if len(fields) > 8 else 0,
                group_name=fields[8] if len(fields) > 8 else "",
                region_id=None,
            )
        case TraceType.EndTransaction:
            bean = _bean(fields)
            bean.msg_type = MessageType(int(fields[9]))
            bean.transaction_id = _optional(fields[10])
            bean.transaction_state = LocalTransactionState(fields[11])
            bean.from_transaction_check = fields[12] == "true"
            return _context(fields, bean)
        case _:
            return None


def _bean(fields: list[str]) -> TraceBean:
    return TraceBean(
        topic=fields[4],
        msg_id=fields[5],
        tags=_optional(fields[6]),
        keys=_optional(fields[7]),
        store_host=fields[8],
    )


def _context(fields: list[str], bean: TraceBean) -> TraceContext:
    return TraceContext(
        trace_type=TraceType(fields[0]),
        beans=[bean],
        timestamp=int(fields[1]),
        region_id=_optional(fields[2]),
        group_name=fields[3],
    )


def _optional(field: str) -> str | None:
    return None if field == _NULL else field


def _view(msg_id: str, context: TraceContext, bean: TraceBean, message: MessageExt) -> TraceView:
    ended = context.trace_type is TraceType.EndTransaction
    return TraceView(
        context.trace_type,
        msg_id,
        context.group_name,
        context.timestamp,
        context.cost_ms,
        context.success,
        bean.topic,
        bean.tags,
        bean.keys,
        bean.store_host,
        bean.client_host or message.born_host,
        bean.offset_msg_id,
        bean.retry_times,
        context.context_code,
        context.request_id,
        bean.transaction_state if ended else None,
    )
