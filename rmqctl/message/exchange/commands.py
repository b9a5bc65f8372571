"""``rmqctl message export`` and ``import``: messages to files, and back."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages
from rmqctl.cli.marks import Changes, changes, most_used, refuses
from rmqctl.cli.opening import view_of
from rmqctl.errors import PartlyDone, UsageProblem
from rmqctl.output.message_rows import MessageRow
from rmqctl.produce.rows import SentRow
from storage.counted import counted

if TYPE_CHECKING:
    from rmqctl.admin.messages.search.query import Query
    from rmqctl.produce.run import Limits
    from rmqctl.produce.sources import Portion, Source
    from storage.readonly import StoreView

    from .import_reader import ImportPosition, TopicMap
    from .masking import Rule


@prints(MessageRow)
@filters_messages
@changes(Changes.PLANS)
@most_used("--save", "--as", "--mask", "--from")
def export(
    ctx: typer.Context,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Only these (default: all)")
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Output file (default: stdout)")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--as", metavar="FORM", help="jsonl, csv, parquet or raw (default: by FILE)"),
    ] = None,
    mask: Annotated[
        str | None,
        typer.Option(
            "--mask", metavar="RULES", help="Hide: json.PATH=hash,property.NAME=drop,keys=stars"
        ),
    ] = None,
    mask_key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Exports with the same key have the same hashes"),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes (default: one per processor)")
    ] = None,
) -> None:
    r"""Write messages to a file that 'message import' can read.

    Without TOPIC: all topics except internal ones. Messages are in the order of the log.
    jsonl and csv have every field, raw has the records of the log, Parquet is for analytics (needs
    pyarrow). The file appears once it is whole.

    One topic:             rmqctl message export orders --save orders.jsonl
    One day, as CSV:       rmqctl message export -t orders --from 2026-01-31 --to 2026-02-01 \
                             --save orders.csv
    With private data masked:
        rmqctl message export -t orders --mask 'json.customer.email=hash,property.token=drop'

    RULES are FIELD=ACTION, or @FILE with one rule per line. Fields: body, json.PATH, keys, tags,
    property.NAME, property.*. Actions: drop, stars, hash (equal texts stay equal), text:TEXT.
    Also ids=hash (unique ids contain addresses) and hosts=drop (addresses of client and broker).
    """
    from .formats import form_of
    from .masking import given_rules

    cli = context_of(ctx)
    shown = form is None and save is None and "output" in cli.given
    form = form_of(form, save)
    if mask is not None and form == "raw":
        raise UsageProblem(
            "--mask: not with raw, the exact bytes of the log; use jsonl, csv or parquet"
        )
    rules = given_rules(cli, mask, mask_key)
    if not shown and any(name in cli.given for name in ("where", "sort", "columns", "output")):
        raise UsageProblem(
            "--columns, --sort, --where and -o are for printed rows; a file has every field of the "
            "selected messages, in the form of --as"
        )
    if save in (None, "-") and (form == "parquet" or (form == "raw" and sys.stdout.isatty())):
        raise UsageProblem(f"{form} cannot be printed; name a file with --save")
    with view_of(cli) as view:
        from rmqctl.message.search.query import build_query

        query = build_query(cli, view, None, topics or None, "body", needs_filter=False)
        _export(cli, view, query, None if shown else form, rules, save, jobs)


def _export(
    cli: Cli,
    view: "StoreView",
    query: "Query",
    form: str | None,
    rules: "list[Rule]",
    save: str | None,
    jobs: int | None,
) -> None:
    from .export import ExportRun
    from .formats import RowWriter, saved_to, writer_for, writer_of_file
    from .masking import unmatched

    run = ExportRun(cli, view, query, rules, jobs)
    done = "exported"
    if form is None:
        run.limit = None if cli.view.picks else cli.view.limit
        run.run(RowWriter(cli.out, cli.view))
    elif save in (None, "-"):
        run.run(writer_for(form, cli.out, view, terminal=cli.view.terminal))
        cli.out.flush()
    else:
        path = Path(str(save))
        dry = cli.flag("dry_run")
        with saved_to(path, dry_run=dry) as file:
            run.run(writer_of_file(form, file, view))
        done = "dry run: would export" if dry else done
        cli.say(f"{done} {counted(run.count, 'message')} to {path}")
    for sentence in unmatched(rules):
        cli.warn(sentence)
    if run.damaged:
        from rmqctl.admin.left_out import tell_left_out

        tell_left_out(view, run.damaged, cli.warn)
        raise PartlyDone(
            f"{done} {counted(run.count, 'message')}, without "
            f"{counted(len(run.damaged), 'damaged record')}; 'rmqctl store fsck' shows which"
        )


@prints(SentRow)
@changes(Changes.RUNS)
@refuses(
    *("where", "limit"),
    because="is for rows; message import stores the whole file: filter when you export",
)
@most_used("--as", "--map-topic", "--keep-times", "--skip-invalid")
def import_messages(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A file of 'message export'")],
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Topic for all other messages")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--as", metavar="FORM", help="jsonl, csv, parquet or raw (default: by FILE)"),
    ] = None,
    map_topic: Annotated[
        list[str] | None,
        typer.Option(
            "--map-topic", metavar="A=B", help="Store messages of topic A in B; repeatable"
        ),
    ] = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Skip messages that cannot be stored")
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="Store empty bodies, which block groups of Java consumers",
        ),
    ] = False,
    fold_queues: Annotated[
        bool,
        typer.Option(
            "--fold-queues",
            help="Where a topic has fewer queues, store in the queue of the number modulo theirs",
        ),
    ] = False,
    keep_times: Annotated[
        bool,
        typer.Option("--keep-times", help="Keep times, ids, hosts and all other fields; see below"),
    ] = False,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="X", help="Keep the times between the messages: 1, 0.5 (half as fast), 2x"
        ),
    ] = None,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", help="Ignore unknown fields and columns"),
    ] = False,
) -> None:
    """Store the messages of a file, as new messages.

    The fields are those of 'message export': body or body_base64, keys, tags, flag, properties,
    topic, queue_id; ids, times and offsets are ignored. key, tag, value, payload and headers of
    other tools are accepted, other names are refused. Other columns of CSV become properties.

    Bodies, keys, tags, flags and user properties stay the same byte for byte; ids and times are
    new. By default, messages are stored in the topic and queue that they had. A new topic gets as
    many queues as its messages need. A message of a queue that a topic lacks is refused.

    With --keep-times, only offsets and offset ids are new. As store times must not decrease within
    a log, the store must be new, or have no newer message; otherwise the import is refused.

    To the same topics:           rmqctl message import orders.jsonl
    To another topic:             rmqctl message import orders.jsonl --map-topic orders=orders-copy
    From another store:
        rmqctl -S old message export -t orders | rmqctl -S new message import -
    With their times, to a new store:
        rmqctl -S new message import orders.raw --keep-times
    An hour again, half as fast:
        rmqctl message export orders --from -1h | rmqctl message import - again --speed 0.5
    """
    from rmqctl.cli.given_file import STDIN, tell_if_typed
    from rmqctl.produce.run import Limits

    from .formats import form_of
    from .import_reader import TopicMap, check_file

    cli = context_of(ctx)
    if cli.flag("dry_run"):
        raise UsageProblem("message import has no dry run")
    form = form_of(form, file)
    if file != STDIN:
        check_file(file)
    elif form == "parquet":
        raise UsageProblem("Parquet cannot be read from a pipe; name a file")
    mapped = _mapped_topics(cli, map_topic or ())
    topics = TopicMap(mapped, topic)
    for name in [*mapped.values(), *([topic] if topic else [])]:
        from broker.validation import check_send_topic

        check_send_topic(name)
    tell_if_typed(cli, file)
    if keep_times:
        source = _whole_portions(cli, file, form, ignore=ignore_unknown)
        with _warning_of_unused(cli, topics, goes_on=skip_invalid):
            _import_as_they_were(
                cli,
                source,
                topics,
                topic,
                skip_invalid=skip_invalid,
                allow_empty=allow_empty,
                fold_queues=fold_queues,
            )
    else:
        from rmqctl.produce.replay import parse_speed, replayed

        pace = cli.parsed("--speed", parse_speed, speed) if speed else None
        by_columns = pace is None
        source = _portions(cli, file, form, ignore=ignore_unknown, by_columns=by_columns)
        if pace is not None:
            source = source._replace(portions=replayed(source.portions, pace, zone=cli.zone))
        limits = Limits(_BATCH, None, skip_invalid, None, allow_empty)
        with _warning_of_unused(cli, topics, goes_on=skip_invalid):
            _import(cli, source, topics, topic, limits, fold_queues=fold_queues)


@contextmanager
def _warning_of_unused(cli: Cli, topics: "TopicMap", *, goes_on: bool) -> Iterator[None]:
    """Warn of each ``--map-topic`` that no message needed, once the whole file was read."""
    partly = None
    try:
        yield
    except PartlyDone as error:
        if not goes_on:
            raise
        partly = error
    for name in topics.unused:
        cli.warn(f"--map-topic: no message is in topic {name}")
    if partly is not None:
        raise partly


def _mapped_topics(cli: Cli, texts: Iterable[str]) -> dict[str, str]:
    """The new topic of each one that ``--map-topic`` names."""
    from .import_reader import parse_map

    mapped: dict[str, str] = {}
    for text in texts:
        old, new = cli.parsed("--map-topic", parse_map, text)
        if mapped.setdefault(old, new) != new:
            raise UsageProblem(f"--map-topic: topic {old} is mapped to {mapped[old]} and to {new}")
    return mapped


def _import_as_they_were(
    cli: Cli,
    source: "Source",
    topics: "TopicMap",
    topic: str | None,
    *,
    skip_invalid: bool,
    allow_empty: bool,
    fold_queues: bool,
) -> None:
    from broker.api.send import DEFAULT_TOPIC_QUEUE_NUMS
    from rmqctl.cli.opening import open_for_writing

    from .kept_times_import import ImportTargets, KeptTimesImport
    from .target_queues import TargetQueues

    with open_for_writing(cli, create=True) as broker:
        queues = TargetQueues(broker, DEFAULT_TOPIC_QUEUE_NUMS, fold=fold_queues)
        targets = ImportTargets(topics, queues)
        run = KeptTimesImport(
            cli, broker, targets, skip_invalid=skip_invalid, allow_empty=allow_empty
        )
        run.run(source, to=topic or _TO)


def _import(
    cli: Cli,
    source: "Source",
    topics: "TopicMap",
    topic: str | None,
    limits: "Limits",
    *,
    fold_queues: bool,
) -> None:
    from broker.api.send import DEFAULT_TOPIC_QUEUE_NUMS
    from rmqctl.cli.opening import open_for_writing
    from rmqctl.produce.rate_limit import Pace
    from rmqctl.produce.run import ProduceRun
    from rmqctl.produce.sender import Defaults

    from .import_reader import ImportPosition
    from .target_queues import TargetQueues

    with open_for_writing(cli, create=True) as broker:
        queues = TargetQueues(broker, DEFAULT_TOPIC_QUEUE_NUMS, fold=fold_queues)
        largest = broker.view.config.max_message_size
        placing = ImportPosition(topics, queues, largest, allow_empty=limits.allow_empty)
        source = source._replace(portions=_placed(source.portions, placing))
        run = ProduceRun(cli, Pace(None), limits, to=topic or _TO)
        run.run(broker, source, Defaults(topic or ""))


_BATCH = 4096
_TO = "their topics"
"""The target in sentences where no option names one."""


def _placed(portions: "Iterator[Portion]", placing: "ImportPosition") -> "Iterator[Portion]":
    return (placed for portion in portions for placed in placing.place(portion))


def _portions(cli: Cli, file: str, form: str, *, ignore: bool, by_columns: bool) -> "Source":
    """The messages of a file."""
    from rmqctl.produce.given_rows import json_reader
    from rmqctl.produce.sources import Input, ReadBytes, Source

    from . import import_reader

    read = ReadBytes()
    if form == "raw":
        return Source(import_reader.raw_portions(file, read), _size(file), read=read)
    if form == "parquet":
        portions = import_reader.parquet_portions(file, read, ignore_unknown=ignore)
        return Source(portions, _size(file), read=read)
    given = Input([file], b"\n", import_reader.LONGEST_LINE)
    if form == "csv":
        portions = given.csv(
            import_reader.parse_fields,
            ignore_unknown=ignore,
            tell=cli.say,
            by_columns=by_columns,
            has_places=True,
        )
    else:
        portions = given.parsed(
            lambda line: import_reader.parse_line(line, ignore_unknown=ignore),
            strips=True,
            reader=json_reader(has_places=True) if by_columns else None,
        )
    return Source(portions, given.total_bytes, given)


def _whole_portions(cli: Cli, file: str, form: str, *, ignore: bool) -> "Source":
    """The same, for messages with all stored fields."""
    from rmqctl.produce.sources import Input, ReadBytes, Source

    from . import kept_times
    from .import_reader import LONGEST_LINE

    read = ReadBytes()
    if form == "raw":
        return Source(kept_times.whole_raw_portions(file, read), _size(file), read=read)
    if form == "parquet":
        portions = kept_times.whole_parquet_portions(file, read, ignore_unknown=ignore)
        return Source(portions, _size(file), read=read)
    given = Input([file], b"\n", LONGEST_LINE)
    if form == "csv":
        portions = given.csv(
            kept_times.parse_whole_fields,
            ignore_unknown=ignore,
            keeps_properties=True,
            tell=cli.say,
        )
    else:
        portions = given.parsed(
            lambda line: kept_times.parse_whole_line(line, ignore_unknown=ignore), strips=True
        )
    return Source(portions, given.total_bytes, given)


def _size(file: str) -> int | None:
    path = Path(file)
    return path.stat().st_size if path.is_file() else None
