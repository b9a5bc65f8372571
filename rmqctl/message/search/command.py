"""``rmqctl message search``: content search over the whole log."""

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rmqctl.admin.messages.search.rows import NearRow, SearchCount
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages
from rmqctl.cli.marks import most_used
from rmqctl.cli.opening import view_of
from rmqctl.cli.signals import Terminated, TimeLimit
from rmqctl.output.message_rows import MessageRow

if TYPE_CHECKING:
    from rmqctl.admin.messages.search.run import SearchRun
    from storage.readonly import StoreView

    from .query import Query

_LIKE_A_PROPERTY: Final = re.compile(r"[\w.-]+=[^\s=]+")


@prints(MessageRow, NearRow, SearchCount)
@filters_messages
@most_used("--from", "--to", "--regex", "--json-path", "--around", "--count-only")
def search(
    ctx: typer.Context,
    pattern: Annotated[
        str | None, typer.Argument(metavar="[PATTERN]", help="The text to find")
    ] = None,
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic (default: all)")
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="LIST",
            help="Fields for PATTERN and --regex: body, tags, keys, properties (default: all)",
        ),
    ] = None,
    around: Annotated[
        int, typer.Option(metavar="N", min=0, help="Also show N messages before and after")
    ] = 0,
    count_only: Annotated[
        bool, typer.Option("--count-only", help="Print only the number of hits")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes (default: one per processor)")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Continue a search that stopped")
    ] = None,
) -> None:
    r"""Find messages by content: bodies, properties, keys and tags, in the whole log.

    PATTERN is a plain text, --regex a regular expression; both search the body and the values of
    all properties, or the fields of --in. A message must match all filters. Compressed bodies are
    unpacked. The number of hits is not limited; they are printed as they are found, in the order
    in which they were stored. A search that stops (--limit, --timeout, Ctrl-C) prints the --resume
    option that continues it.

    A text in any field:            rmqctl message search 'order 4711'
    Count hits in one topic:        rmqctl message search timeout -t orders --count-only
    With messages around hits:      rmqctl message search timeout --around 3
    In JSON bodies, last hour:      rmqctl message search --json-path 'sum > 100' --from -1h
    By a property, as JSON lines:   rmqctl message search -H color=red -o jsonl
    A regular expression:           rmqctl message search --regex 'sku-\d+' --in body
    """
    cli = context_of(ctx)
    with view_of(cli) as view:
        from rmqctl.admin.messages.search.run import SearchRun, position_of, usable_cpus

        from .query import build_query

        query = build_query(cli, view, pattern, None if topic is None else [topic], fields)
        start = position_of(resume, query, view.log_max_offset())
        parts = None if start is None else [(start, view.log_max_offset())]
        run = SearchRun(view, query, jobs or usable_cpus(), parts)
        if count_only:
            _count(cli, view, run, query)
        else:
            _print(cli, view, run, query, around, pattern)


def _count(cli: Cli, view: "StoreView", run: "SearchRun", query: "Query") -> None:
    from rmqctl.admin.messages.search.run import Token

    hits = 0
    damaged: set[int] = set()
    with (
        cli.progress("search", "bytes", run.total_bytes) as progress,
        run.hits(progress) as pieces,
    ):
        for found in pieces:
            hits += len(found.offsets)
            damaged.update(found.damaged)
    token = Token(run.end, query.fingerprint)
    cli.one(SearchCount(hits, run.total_bytes, len(damaged), str(token)))
    _tell_damaged(cli, view, damaged)


def _tell_damaged(cli: Cli, view: "StoreView", damaged: set[int]) -> None:
    if damaged:
        from rmqctl.admin.left_out import tell_left_out

        tell_left_out(view, damaged, cli.left_out)
        count = len(damaged)
        cli.left_out(f"{count} damaged records may be hits, too; 'rmqctl store fsck' shows them")


def _print(
    cli: Cli,
    view: "StoreView",
    run: "SearchRun",
    query: "Query",
    around: int,
    pattern: str | None,
) -> None:
    from rmqctl.admin.messages.search.run import Token

    from .printing import HitPrinter

    printer = HitPrinter(cli, view, query.matches, around)
    damaged: set[int] = set()
    done_to = run.start
    hits = 0
    with (
        cli.progress("search", "bytes", run.total_bytes) as progress,
        run.hits(progress) as pieces,
    ):
        try:
            for found in pieces:
                damaged.update(found.damaged)
                if found.offsets:
                    printer.write(found.offsets)
                    printer.flush()
                    hits += len(found.offsets)
                    if printer.full:
                        done_to = printer.done_to
                        break
                done_to = found.piece.end
            else:
                done_to = run.end
        except (KeyboardInterrupt, TimeLimit, Terminated):
            printer.flush()
            done_to = run.start if cli.view.sort else max(done_to, printer.done_to)
            token = Token(done_to, query.fingerprint)
            cli.say(f"to continue: --resume {token}")
            raise
    printer.finish()
    _tell_damaged(cli, view, damaged | printer.unreadable)
    token = Token(done_to, query.fingerprint)
    if done_to < run.end:
        cli.say(f"stopped at the limit; to continue: --resume {token}")
    else:
        cli.detail(f"{hits} hits; to search later messages: --resume {token}")
        if not hits and pattern is not None and _LIKE_A_PROPERTY.fullmatch(pattern):
            cli.say(f"'{pattern}' was searched as a text; for a property: -H '{pattern}'")
