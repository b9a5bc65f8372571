"""``rmqctl message``: by key and tag, what a message went through, what an id tells."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.opening import view_of
from rmqctl.errors import NotFound, UsageProblem

from .filter_options import filters_messages, warn_of_blank
from .lookup_rows import IdRow, LifeRow, TraceRow
from .rows import MessageRow

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .filter_options import MessageFilter


@prints(MessageRow)
@filters_messages
def query(
    ctx: typer.Context,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="K", help="With this key, or unique id")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="Of this topic (default: all)"),
    ] = None,
    index: Annotated[
        bool, typer.Option("--index", help="Only what the key index knows: a broker's answer")
    ] = False,
    scan: Annotated[
        bool, typer.Option("--scan", help="Go through the whole log, whatever the index says")
    ] = False,
) -> None:
    """Find all messages with a key or a tag, in the order in which they were stored.

    Keys are looked up in the index, and in those parts of the log that it does not cover. There
    is no cap; hits of other keys with the same hash are left out.

    By key:                  rmqctl message query --key order-4711
    By key, of an hour:      rmqctl message query --key order-4711 -t orders --from -1h
    By tag:                  rmqctl message query --tag 'paid || refunded' -t orders
    With a damaged index:    rmqctl message query --key order-4711 --scan
    """
    cli = context_of(ctx)
    if key is None and "tag" not in cli.given:
        raise UsageProblem("name a --key or a --tag; 'message search' looks at everything")
    if key is None and (index or scan):
        raise UsageProblem("--index and --scan are ways to find a --key")
    if key == "":
        raise UsageProblem("--key: it is empty")
    if key is not None:
        warn_of_blank(cli, key)
    with view_of(cli) as view:
        from rmqctl.message.search.query import check_topic_exists

        from .filter_options import message_filter

        if topic is not None:
            check_topic_exists(view, topic)
        chosen = message_filter(cli)
        topics = None if topic is None else [topic]
        if key is not None:
            found = _with_key(cli, view, key, topics, chosen, index=index, scan=scan)
        else:
            found = _with_tag(cli, view, topics, chosen)
        from .rows import readable_rows

        cli.rows(MessageRow, readable_rows(cli, _wanted(cli, found, chosen)))


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
    from rmqctl.message.search.keys import Look, read_all, with_key
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
    from rmqctl.message.search.keys import all_topics, read_all
    from rmqctl.message.search.tags import with_tag
    from storage.read.tag_filter import TagFilter

    tags = TagFilter.parse(chosen.tags)
    if tags is None:
        raise UsageProblem("--tag: every message has the tag *; name one, or a --key")
    return read_all(cli, view, with_tag(view, topics or all_topics(view), tags))


def _wanted(
    cli: Cli, messages: "Iterator[MessageExt]", chosen: "MessageFilter"
) -> "Iterator[MessageExt]":
    """Those that the filter wants; where it asks for a body that cannot be unpacked: left out."""
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
        str | None, typer.Option(metavar="TOPIC", help="Where traces are (RMQ_SYS_TRACE_TOPIC)")
    ] = None,
) -> None:
    """Show what clients have noted of a message: who sent it, who consumed it, when.

    Only clients that trace leave something: Java's with enableMsgTrace, ours with enable_msg_trace.

    All of it:                  rmqctl message trace 7F000001000ABC...
    Who failed to consume it:   rmqctl message trace 7F000001000ABC... --where 'success = false'
    """
    cli = context_of(ctx)
    with view_of(cli) as view:
        from storage.format.message import TRACE_TOPIC

        from .traces import trace_rows

        topic = trace_topic or TRACE_TOPIC
        rows = trace_rows(cli, view, message_id, topic)
        if not rows:
            raise NotFound(
                f"nobody has traced {message_id} in topic {topic} of {view.root}; "
                f"'rmqctl message life {message_id}' tells what the records do"
            )
        cli.rows(TraceRow, rows)


@prints(LifeRow)
def life(
    ctx: typer.Context,
    message_id: Annotated[str, typer.Argument(metavar="ID|KEY", help="Any id of it, or a key")],
    scan: Annotated[
        bool, typer.Option("--scan", help="Go through the whole log, whatever the index says")
    ] = False,
) -> None:
    """Show what became of a message: its records in order, and which groups have read past them.

    Stored, delayed, given back (with the time at which it comes again, and why), retried, dead,
    sent again under another id. READ_PAST says that a group's progress is behind the message,
    which does not prove that it was processed.

    By any id:    rmqctl message life 7F000001000ABC...
    By key:       rmqctl message life order-4711
    """
    cli = context_of(ctx)
    with view_of(cli) as view:
        from rmqctl.message.search.keys import Look

        from .timeline import life_rows

        look = Look.SCAN if scan else Look.EVERYWHERE
        cli.rows(LifeRow, life_rows(cli, view, message_id, look))


@prints(IdRow)
def decode_id(
    ctx: typer.Context,
    message_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Message ids")],
    kind: Annotated[
        str | None, typer.Option("--as", metavar="KIND", help="Take them as offset or unique ids")
    ] = None,
) -> None:
    """Show what message ids tell by themselves; no store is needed.

    Offset ids name the broker and the place in its log, unique ids the client, its process and
    when. Both look alike: which one it is, is told by its digits.

    rmqctl message decode-id 7F00000100002A9F0000000000001000
    """
    from .ids import KINDS, decoded_id

    cli = context_of(ctx)
    if kind is not None and kind not in KINDS:
        raise UsageProblem(f"--as: {kind!r} is not one of {', '.join(KINDS)}")
    rows = [decoded_id(text, cli.now_ms, cli.zone, kind) for text in message_ids]
    if len(rows) == 1:
        cli.one(rows[0])
    else:
        cli.rows(IdRow, rows)
