"""``rmqctl message query``, ``trace``, ``life`` and ``decode-id``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.messages.rows import IdRow, LifeRow, TraceRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages, warn_of_blank
from rmqctl.cli.marks import most_used, uses_no_store
from rmqctl.cli.opening import view_of
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.output.message_rows import MessageRow

if TYPE_CHECKING:
    from rmqctl.admin.message_filter import MessageFilter
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


@prints(MessageRow)
@filters_messages
@most_used("--key", "--tag", "--from", "--to", "--property", "--index")
def query(
    ctx: typer.Context,
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic (default: all)")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="K", help="With this key or unique id")
    ] = None,
    index: Annotated[
        bool, typer.Option("--index", help="Use only the key index, as a broker does")
    ] = False,
    scan: Annotated[
        bool, typer.Option("--scan", help="Scan the whole log instead of using the index")
    ] = False,
) -> None:
    """Find all messages with a key or a tag, in the order in which they were stored.

    Keys are searched in the index, and in the parts of the log that it does not cover. The number
    of results is not limited; other keys with the same hash are left out.

    By key:                  rmqctl message query --key order-4711
    By key, last hour:       rmqctl message query --key order-4711 -t orders --from -1h
    By tag:                  rmqctl message query --tag 'paid || refunded' -t orders
    Without the index:       rmqctl message query --key order-4711 --scan
    """
    cli = context_of(ctx)
    if key is None and "tag" not in cli.given:
        raise UsageProblem("give --key or --tag; 'message search' searches all fields")
    if key is None and (index or scan):
        raise UsageProblem("--index and --scan need --key")
    if key == "":
        raise UsageProblem("--key is empty")
    if key is not None:
        warn_of_blank(cli, key)
    with view_of(cli) as view:
        from rmqctl.admin.known_topics import check_topic_exists
        from rmqctl.cli.filter_options import message_filter

        if topic is not None:
            check_topic_exists(view, topic)
        chosen = message_filter(cli)
        topics = None if topic is None else [topic]
        if key is not None:
            found = _with_key(cli, view, key, topics, chosen, index=index, scan=scan)
        else:
            found = _with_tag(cli, view, topics, chosen)
        from rmqctl.output.message_rows import readable_rows

        cli.rows(MessageRow, readable_rows(cli.left_out, _wanted(cli, found, chosen)))


def _with_key(
    cli: Cli,
    view: "StoreView",
    key: str,
    topics: list[str] | None,
    chosen: "MessageFilter",
    *,
    index: bool,
    scan: bool,
) -> "Iterator[MessageExt]":
    from rmqctl.admin.messages.search.keys import Look, read_all, with_key
    from storage.readonly import FOREVER

    look = Look.INDEX if index else Look.SCAN if scan else Look.EVERYWHERE
    end = FOREVER if chosen.to_timestamp is None else chosen.to_timestamp
    hits = with_key(cli, view, key, topics, look, chosen.from_timestamp or 0, end)
    if hits.damaged:
        cli.left_out(
            f"{len(hits.damaged)} damaged records may have the key, too; 'rmqctl store fsck' "
            "shows them"
        )
    return read_all(cli, view, hits.offsets)


def _with_tag(
    cli: Cli, view: "StoreView", topics: list[str] | None, chosen: "MessageFilter"
) -> "Iterator[MessageExt]":
    from rmqctl.admin.known_topics import all_topics
    from rmqctl.admin.messages.search.keys import read_all
    from rmqctl.admin.messages.search.tags import with_tag
    from storage.read.tag_filter import TagFilter

    tags = TagFilter.parse(chosen.tags)
    if tags is None:
        raise UsageProblem("--tag: * matches every message; give a tag, or --key")
    return read_all(cli, view, with_tag(view, topics or all_topics(view), tags))


def _wanted(
    cli: Cli, messages: "Iterator[MessageExt]", chosen: "MessageFilter"
) -> "Iterator[MessageExt]":
    """The messages that the filter selects, without those whose needed body cannot be unpacked."""
    from storage.format.errors import BodyError

    start, end, queues = chosen.from_timestamp, chosen.to_timestamp, chosen.queues
    for message in messages:
        if (
            (start is not None and message.store_timestamp < start)
            or (end is not None and message.store_timestamp >= end)
            or (queues is not None and message.queue_id not in queues)
        ):
            continue
        try:
            if chosen.predicate is not None and not chosen.predicate(message):
                continue
        except BodyError as error:
            cli.left_out(f"left out {error}")
            continue
        yield message


@prints(TraceRow)
def trace(
    ctx: typer.Context,
    message_id: Annotated[str, typer.Argument(metavar="ID", help="A unique id")],
    trace_topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Topic of the traces (RMQ_SYS_TRACE_TOPIC)")
    ] = None,
) -> None:
    """Show the trace of a message: which clients sent and consumed it, and when.

    Only clients with tracing enabled write traces: enableMsgTrace in Java, enable_msg_trace here.

    All records:                rmqctl message trace 7F000001000ABC...
    Failures only:              rmqctl message trace 7F000001000ABC... --where 'success = false'
    """
    cli = context_of(ctx)
    with view_of(cli) as view:
        from rmqctl.admin.messages.traces import trace_rows
        from storage.format.message import TRACE_TOPIC

        topic = trace_topic or TRACE_TOPIC
        rows = trace_rows(cli, view, message_id, topic)
        if not rows:
            raise NotFound(
                f"topic {topic} of {view.root} has no trace of {message_id}; "
                f"'rmqctl message life {message_id}' shows its history from the log"
            )
        cli.rows(TraceRow, rows)


@prints(LifeRow)
def life(
    ctx: typer.Context,
    message_id: Annotated[str, typer.Argument(metavar="ID|KEY", help="Any id, or a key")],
    scan: Annotated[
        bool, typer.Option("--scan", help="Scan the whole log instead of using the index")
    ] = False,
) -> None:
    """Show the history of a message: its records in order, and the groups that have read past it.

    The events are: stored, delayed, sent back (with the retry time and the reason), retried, dead,
    redriven with another id. READ_PAST means that a group's progress is past the message, which
    does not prove that the message was processed.

    By any id:    rmqctl message life 7F000001000ABC...
    By key:       rmqctl message life order-4711
    """
    cli = context_of(ctx)
    with view_of(cli) as view:
        from rmqctl.admin.messages.search.keys import Look
        from rmqctl.admin.messages.timeline import life_rows

        look = Look.SCAN if scan else Look.EVERYWHERE
        cli.rows(LifeRow, life_rows(cli, view, message_id, look))


@prints(IdRow)
@uses_no_store
def decode_id(
    ctx: typer.Context,
    message_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids")],
    kind: Annotated[
        str | None, typer.Option("--as", metavar="KIND", help="Decode as offset or unique ids")
    ] = None,
) -> None:
    """Decode message ids. No store is needed.

    An offset id contains the broker's address and a log position, a unique id the client's address,
    process and time. Both look alike; the digits decide which kind an id is.

    rmqctl message decode-id 7F00000100002A9F0000000000001000
    """
    from rmqctl.admin.messages.id_decoding import KINDS, decoded_id

    cli = context_of(ctx)
    if kind is not None and kind not in KINDS:
        raise UsageProblem(f"--as: {kind!r} is not one of {', '.join(KINDS)}")
    rows = [decoded_id(text, cli.now_ms, cli.zone, kind) for text in message_ids]
    if len(rows) == 1:
        cli.one(rows[0])
    else:
        cli.rows(IdRow, rows)
