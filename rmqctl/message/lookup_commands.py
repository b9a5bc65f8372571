"""``rmqctl message query``, ``trace``, ``life`` and ``decode-id``."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.messages.rows import IdRow, LifeRow, TraceRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.filter_options import filters_messages, warn_of_blank
from rmqctl.cli.marks import most_used, uses_no_store
from rmqctl.cli.opening import view_of, warn_of_doubt
from rmqctl.cli.scan_display import ScanDisplay
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.output.message_rows import MessageRow

if TYPE_CHECKING:
    from rmqctl.admin.message_filter import MessageFilter
    from rmqctl.admin.messages import Look


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
    with view_of(cli) as view, ScanDisplay(cli) as shown:
        from rmqctl.admin import messages
        from rmqctl.admin.known_topics import check_topic_exists
        from rmqctl.cli.filter_options import message_filter
        from rmqctl.output.message_rows import readable_rows

        if topic is not None:
            check_topic_exists(view, topic)
        wanted = message_filter(cli)
        topics = None if topic is None else [topic]
        if key is not None:
            look = messages.Look.INDEX if index else _look(scan)
            found = messages.with_key(
                *(view, key, topics, wanted),
                look=look,
                left_out=cli.left_out,
                on_progress=shown,
            )
        else:
            found = messages.with_tag(view, _tags(wanted), topics, wanted, left_out=cli.left_out)
        with closing(found):  # with --limit, it says here what it has left out
            cli.rows(MessageRow, readable_rows(cli.left_out, found))


def _look(scan: bool) -> "Look":
    from rmqctl.admin.messages import Look

    return Look.SCAN if scan else Look.EVERYWHERE


def _tags(wanted: "MessageFilter") -> str:
    from storage.read.tag_filter import TagFilter

    tags = wanted.tags or ""
    if TagFilter.parse(tags) is None:
        raise UsageProblem("--tag: * matches every message; give a tag, or --key")
    return tags


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
    with view_of(cli) as view, ScanDisplay(cli) as shown:
        from rmqctl.admin import messages
        from rmqctl.admin.known_topics import check_topic_exists
        from storage.format.message import TRACE_TOPIC

        if trace_topic is not None:
            check_topic_exists(view, trace_topic)
        topic = trace_topic or TRACE_TOPIC
        rows = messages.trace(view, message_id, topic, left_out=cli.left_out, on_progress=shown)
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
    with view_of(cli) as view, ScanDisplay(cli) as shown:
        from rmqctl.admin import messages

        rows = messages.life(
            view, message_id, look=_look(scan), left_out=cli.left_out, on_progress=shown
        )
        cli.rows(LifeRow, rows)
        warn_of_doubt(cli, view)


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
    from rmqctl.admin import messages
    from rmqctl.admin.messages.id_decoding import KINDS

    cli = context_of(ctx)
    if kind is not None and kind not in KINDS:
        raise UsageProblem(f"--as: {kind!r} is not one of {', '.join(KINDS)}")
    rows = [messages.decode_id(text, cli.now_ms, cli.zone, kind) for text in message_ids]
    if len(rows) == 1:
        cli.one(rows[0])
    else:
        cli.rows(IdRow, rows)
