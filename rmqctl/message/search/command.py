"""``rmqctl message search``: content search over the whole log."""

import re
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rmqctl.admin.messages.search.rows import NearRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages, given_times
from rmqctl.cli.marks import most_used
from rmqctl.cli.opening import view_of
from rmqctl.cli.scan_display import ScanDisplay
from rmqctl.cli.signals import Terminated, TimeLimit
from rmqctl.output.message_rows import MessageRow
from storage.counted import counted

from .rows import SearchCount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rmqctl.admin.messages.search.neighbours import Neighbour
    from rmqctl.admin.messages.search.query import Query
    from rmqctl.admin.messages.search.run import Search
    from storage.readonly import StoreView

    from .resume import Token

_STOPPED: Final = (KeyboardInterrupt, TimeLimit, Terminated)
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
    option that continues it with the times of its first call, and names the damage that it met;
    the next call does not. With --around, --limit counts hits, unless they are sorted.

    A text in any field:            rmqctl message search 'order 4711'
    Count hits in one topic:        rmqctl message search timeout -t orders --count-only
    With messages around hits:      rmqctl message search timeout --around 3
    In JSON bodies, last hour:      rmqctl message search --json-path 'sum > 100' --from -1h
    By a property, as JSON lines:   rmqctl message search -H color=red -o jsonl
    A regular expression:           rmqctl message search --regex 'sku-\d+' --in body
    """
    cli = context_of(ctx)
    topics = None if topic is None else [topic]
    with view_of(cli) as view, ScanDisplay(cli) as shown:
        from rmqctl.admin.messages.search.run import Search

        from .query import build_query, fingerprint
        from .resume import Token, position_of, token_of

        given = given_times(cli)
        before = token_of(resume, given)
        times = given if before is None else before.times
        if before is not None and times != (None, None):
            cli.detail("the search goes on with the times of its first call")
        query = build_query(cli, view, pattern, topics, fields, times=times)
        mark = fingerprint(cli, pattern, topics, fields, times)
        start = position_of(before, mark, view.log_max_offset())
        run = Search(view, query, start=start, jobs=jobs, on_progress=shown)

        def token(position: int) -> Token:
            return Token(position, mark, times)

        if count_only:
            _count(cli, view, run, token)
        else:
            hits, done = _print(cli, view, run, query, around, token)
            if not hits and done and pattern is not None and _LIKE_A_PROPERTY.fullmatch(pattern):
                cli.say(f"'{pattern}' was searched as a text; for a property: -H '{pattern}'")


def _count(cli: Cli, view: "StoreView", run: "Search", token: "Callable[[int], Token]") -> None:
    """Print the number of hits; that of the part that was searched, if it is stopped."""
    hits, searched, done_to = 0, 0, run.start

    def tell(stopped_at: int) -> None:
        damaged = run.damaged_before(stopped_at)
        cli.one(SearchCount(hits, searched, len(damaged), str(token(stopped_at))))
        cli.out.flush()
        _tell_damaged(cli, view, damaged)

    with closing(run.parts()) as parts:
        try:
            for part in parts:
                more = hits + len(part.hits)
                # Only stores: a signal does not come between them.
                hits, searched, done_to = more, part.scanned_bytes, part.position
        except _STOPPED:
            tell(done_to)
            cli.say(f"to continue: --resume {token(done_to)}")
            raise
    tell(run.end)


def _tell_damaged(cli: Cli, view: "StoreView", damaged: set[int]) -> None:
    if damaged:
        from rmqctl.admin.left_out import tell_left_out

        tell_left_out(view, damaged, cli.left_out)
        count = len(damaged)
        cli.left_out(
            f"{counted(count, 'damaged record')} may be hits, too; 'rmqctl store fsck' shows them"
        )


def _tell_neighbours(cli: Cli, unreadable: "Iterable[Neighbour]") -> None:
    from rmqctl.admin.left_out import Named

    named = Named(cli.left_out)
    for one in sorted(unreadable):
        place = f"topic {one.topic}, queue {one.queue_id}, offset {one.queue_offset}"
        named.add(f"left out a message beside a hit ({place}): it cannot be read")
    named.finish()
    if named.count:
        cli.say("'rmqctl store fsck' shows why")


def _print(
    cli: Cli,
    view: "StoreView",
    run: "Search",
    query: "Query",
    around: int,
    token: "Callable[[int], Token]",
) -> tuple[int, bool]:
    """Print the hits; returns their number, and whether the search came to its end."""
    from rmqctl.admin.messages.search.hit_rows import HitRows
    from rmqctl.admin.messages.search.neighbours import not_named

    from .printing import HitPrinter

    hit_rows = HitRows(view, query.matches, around)
    printer = HitPrinter(cli, hit_rows)
    done_to = run.start
    hits = 0

    def tell() -> None:
        _tell_damaged(cli, view, run.damaged_before(done_to) | hit_rows.unreadable)
        if hit_rows.neighbours:
            _tell_neighbours(cli, not_named(view, query, hit_rows.neighbours))

    with closing(run.parts()) as parts:
        try:
            for part in parts:
                if part.hits:
                    printer.write(part.hits)
                    printer.flush()
                    hits += len(part.hits)
                    if printer.full:
                        done_to = max(done_to, printer.done_to)
                        break
                done_to = part.position
            else:
                done_to = run.end
        except _STOPPED:
            cli.incomplete = True  # there may be hits in the rest
            printer.finish()
            printer.flush()
            done_to = max(done_to, printer.done_to)
            tell()
            cli.say(f"to continue: --resume {token(done_to)}")
            raise
    printer.finish()
    tell()
    if done_to < run.end:
        cli.say(f"stopped at the limit; to continue: --resume {token(done_to)}")
    else:
        cli.detail(f"{hits} hits; to search later messages: --resume {token(done_to)}")
    return hits, done_to >= run.end
