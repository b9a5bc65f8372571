"""``rmqctl consume``: read topics, alone or as a member of a group."""

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rmqctl.admin.message_filter import MessageFilter
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages, message_filter
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.errors import OutputFailed, PartlyDone, UsageProblem
from rmqctl.group.options import NewGroup
from rmqctl.output.message_rows import JsonMessageRow, MessageRow
from rmqctl.output.view import Format
from storage.counted import counted

from .body_forms import BODY_FORMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.admin.queues.in_order import Part
    from rmqctl.admin.queues.selection import Group, Span
    from rmqctl.output.encoded_rows import Layout
    from rmqctl.parse.positions import Position

    from .column_filter import ColumnFilter
    from .listener import Handler
    from .member_options import MemberOptions
    from .printing import Printer

_FEW = 2000
"""So few bodies are read faster one by one than NumPy is imported."""
_READER = "TOOLS_CONSUMER"
"""The group of RocketMQ's own tools: every broker has it, and it has no progress."""


@filters_messages
@prints(MessageRow, JsonMessageRow)
@changes(Changes.RUNS)
@most_used("--group", "--exit", "--last", "--follow", "--count", "--from", "--tag", "--exec")
def consume(
    ctx: typer.Context,
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC...", help="The topics to read, in one order")
    ],
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", metavar="GROUP", help="Consume as a member of GROUP"),
    ] = None,
    new_group: NewGroup = False,
    commit: Annotated[
        bool | None,
        typer.Option("--commit/--no-commit", help="Commit the group's progress (default)"),
    ] = None,
    offset: Annotated[
        str | None,
        typer.Option(metavar="POS", help="start end stored 5 5:9 :end +5 -5 @-1h @T1:T2"),
    ] = None,
    last: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only the last N messages")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", "-c", metavar="N", min=0, help="Stop after N messages"),
    ] = None,
    stop_at_end: Annotated[
        bool, typer.Option("--exit", "-e", help="Stop at the current end")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Wait for new messages, also after --last")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option("--format", "-f", metavar="FORMAT", help=r"Print by a template: '%o %k %s\n'"),
    ] = None,
    body: Annotated[
        str | None,
        typer.Option(metavar="FORM", help="text json hex base64 none; else a text to find"),
    ] = None,
    with_meta: Annotated[
        bool, typer.Option("--with-meta", help="Print all fields, not only bodies")
    ] = False,
    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", "-D", metavar="D", help=r"Print D after each body (\n)"),
    ] = None,
    from_where: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Start of a new group in older queues: last, first, timestamp",
        ),
    ] = None,
    consume_timestamp: Annotated[
        str | None, typer.Option(metavar="T", help="Time for --from-where timestamp")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Consume N messages at once")
    ] = None,
    orderly: Annotated[
        bool, typer.Option("--orderly", help="Lock queues; one message at a time")
    ] = False,
    broadcast: Annotated[
        bool, typer.Option("--broadcast", help="Every member gets all messages")
    ] = False,
    command: Annotated[
        str | None,
        typer.Option("--exec", metavar="CMD", help="Run CMD for each message; exit 0 is success"),
    ] = None,
    max_reconsume_times: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Retries before a dead letter"),
    ] = None,
    delay_level: Annotated[
        int | None,
        typer.Option(metavar="N", min=-1, max=18, help="Delay level of retries; -1: no retry"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a setting of RocketMQ's consumer"),
    ] = None,
) -> None:
    r"""Print the messages of topics in the order in which they were stored, and wait for more.

    Without a group, all stored messages are printed and no progress is kept. The command stops
    only with -e, -c, --last, --to or a position that has an end.

    All messages, then stop:          rmqctl consume greetings -e
    The last ten, then follow:        rmqctl consume greetings --last 10 -F
    The last hour, as JSON lines:     rmqctl consume greetings --from -1h -e -o jsonl
    Offset, key and body:             rmqctl consume greetings -e -f '%q:%o %k %s\n'
    With filters:                     rmqctl consume orders -e --tag new --json-path 'sum > 100'
    Two topics at once:               rmqctl consume orders payments -F -f '%t: %s\n'

    With a group, this process is one of its members: members in any number of processes share the
    queues of the topic. A printed message is acknowledged, as are messages before it that filters
    leave out; the group continues after it. Order holds within a queue. -e stops when the queues
    of this member are at their current ends. In a young queue, whose first message is still stored
    and close to the end of the log, a new group starts at 0 whatever --from-where says
    (RocketMQ's rule); --from and --offset set any start. A new group whose name is almost that of a
    group of the topic is probably misspelt: a terminal is asked, a script needs --new-group.

    Continue where a group stopped:   rmqctl consume greetings -g readers -e
    A new group, from an hour ago:    rmqctl consume greetings -g audit --from -1h
    Run a program per message:        rmqctl consume orders -g billing --exec './bill --stdin'

    --exec runs CMD once per message (no shell; the body on stdin; RMQ_TOPIC, RMQ_QUEUE_ID,
    RMQ_QUEUE_OFFSET, RMQ_MSG_ID, RMQ_TAGS, RMQ_KEYS and RMQ_RECONSUME_TIMES in the environment).
    A failed message is retried after 10 s, 30 s, 1 min ...; after --max-reconsume-times (16)
    retries it becomes a dead letter with the failure reason. Exit code 8: some messages failed;
    1: all failed.
    """
    from .checks import check_committing, check_shown
    from .member_options import MemberOptions

    cli = context_of(ctx)
    options = MemberOptions(
        threads,
        orderly,
        broadcast,
        command,
        max_reconsume_times,
        delay_level,
        *_settings(cli, settings or ()),
    ).with_model()
    options.check(group, commit)
    if new_group and (group is None or commit is False):
        raise UsageProblem("--new-group needs --group, without --no-commit")
    prints_form = body is None or body in BODY_FORMS
    chosen = message_filter(cli, body_text=None if prints_form else body)
    position = _position(cli, offset, chosen)
    if last is not None and position is not None and position.begin is not None:
        begin = "--offset" if chosen.from_timestamp is None else "--from"
        raise UsageProblem(f"--last and {begin} exclude each other: both set the start")
    if from_where is not None and _places(position):
        raise UsageProblem("--from-where and --offset exclude each other: both set the start")
    ends = chosen.to_timestamp is not None or (position is not None and position.end is not None)
    if follow and ends:
        raise UsageProblem(
            "--follow and --offset with an end exclude each other: --follow never ends"
        )
    with_meta = _shapes_rows(cli, form, command) or with_meta
    if group is not None and commit is not False:
        check_committing(cli, None if prints_form else body)
    ends_by_itself = stop_at_end or ends or last is not None
    if cli.view.sort and (follow or not ends_by_itself):
        raise UsageProblem("--sort prints after all is read, so it needs an end, such as --exit")
    most = min((n for n in (count, cli.view.limit) if n is not None), default=None)
    picks = cli.view.picks
    filters = bool(cli.view.where or chosen.tags or chosen.predicate)
    if group is not None and commit is not False and len(set(topics)) > 1:
        raise UsageProblem(
            "a member of a group reads one topic here; start one per topic, or read without --group"
        )
    reading = _Reading(
        tuple(dict.fromkeys(topics)),
        position,
        last,
        None if picks else most,
        follow or not (ends_by_itself or most is not None),
        stop_at_end or ends,
        most is not None and filters and not cli.view.sort,
    )
    reader = _group(cli, group, commit, from_where, consume_timestamp)
    if options.broadcast and position is not None and position.begin is not None:
        raise UsageProblem(
            "--broadcast and --offset exclude each other: --offset moves a group; use --from-where"
        )
    body_form = body if prints_form else None
    if command is not None and body_form is not None:
        raise UsageProblem(f"--exec and --body {body_form} exclude each other: the program prints")
    with_meta = with_meta or (form is None and _rows_asked(cli))
    check_shown(body_form, delimiter, template=form is not None, rows=with_meta)
    printer = _printer(
        cli, form, body_form or "text", delimiter, with_meta, most if picks else None
    )
    if reader is None or commit is False:
        from rmqctl.cli.opening import open_for_reading

        with open_for_reading(cli) as broker:
            _run(cli, broker, reading, reader, chosen, printer)
        return
    if command is None:
        from rmqctl.cli.closed_streams import stdout_was_closed

        from .listener import PrintHandler

        if stdout_was_closed():  # what is committed must have been printed
            raise OutputFailed("standard output is closed")
        printing = PrintHandler(printer, chosen.predicate)
        _join(cli, reading, reader, chosen, options, printing, printing.fields, new_group=new_group)
        printer.finish()
        printer.flush()
    else:
        from .execution import CommandRunner

        runner = CommandRunner(command, chosen.predicate)
        try:
            _join(cli, reading, reader, chosen, options, runner, None, new_group=new_group)
        finally:
            runner.terminate()


def _places(position: "Position | None") -> bool:
    """Whether the start differs from the group's progress."""
    from rmqctl.parse.positions import Bound

    begin = None if position is None else position.begin
    return begin is not None and begin.bound is not Bound.STORED


def _shapes_rows(cli: Cli, form: str | None, command: str | None) -> bool:
    """Whether options shape rows; then rows are printed, as bodies have no fields."""
    view = cli.view
    shaping = {"--columns": view.columns, "--where": view.where, "--sort": view.sort}
    given = [name for name, value in shaping.items() if value]
    if given and (form is not None or command is not None):
        other = "--format" if command is None else "--exec"
        raise UsageProblem(f"{given[0]} shapes rows, and {other} prints none")
    return bool(given)


class _Reading(NamedTuple):
    """The queues to read, and the limits."""

    topics: tuple[str, ...]
    position: "Position | None"
    last: int | None
    most: int | None
    """Most messages to read."""
    follow: bool
    ends: bool
    """Whether queues are read up to an end."""
    most_picked: bool
    """Whether it stops after so many messages that filters pick."""


def _position(cli: Cli, offset: str | None, chosen: MessageFilter) -> "Position | None":
    from rmqctl.admin.queues.selection import combined
    from rmqctl.parse.positions import Bound, parse_position

    position = None
    if offset is not None:
        position = cli.parsed(
            "--offset", lambda text: parse_position(text, cli.now_ms, cli.zone), offset
        )
        if position.begin is not None and position.begin.bound is Bound.TIME:
            cli.warn_of_future("--offset", position.begin.value, "no message is that recent")
    return combined(position, chosen.from_timestamp, chosen.to_timestamp)


def _group(
    cli: Cli,
    name: str | None,
    commit: bool | None,
    from_where: str | None,
    consume_timestamp: str | None,
) -> "Group | None":
    from broker.validation import check_group
    from rmqctl.admin.queues.selection import FROM_WHERE, Group

    if name is None:
        if commit or from_where or consume_timestamp:
            raise UsageProblem("--commit, --from-where and --consume-timestamp need --group")
        return None
    check_group(name)
    if from_where is not None and from_where not in FROM_WHERE:
        known = ", ".join(FROM_WHERE)
        raise UsageProblem(f"--from-where: {from_where!r} is not one of {known}")
    if (from_where == "timestamp") != (consume_timestamp is not None):
        raise UsageProblem("--from-where timestamp and --consume-timestamp need each other")
    time = 0
    if consume_timestamp is not None:
        time = cli.time("--consume-timestamp", consume_timestamp)
    return Group(name, FROM_WHERE[from_where or "last"], time, from_where is not None)


def _settings(cli: Cli, given: "Sequence[str]") -> tuple[tuple[str, ...], int | None]:
    """The ``--set`` values, and the consumeTimestamp of them in ms: any form of a time."""
    others, moment = [], None
    for one in given:
        name, equals, value = one.partition("=")
        if name.strip() == "consumeTimestamp" and equals:
            moment = cli.time("--set consumeTimestamp", value)
        else:
            others.append(one)
    return tuple(others), moment


def _rows_asked(cli: Cli) -> bool:
    """Whether another format than bodies alone is selected."""
    return cli.setting("output") is not None and cli.view.format is not Format.PLAIN


def _printer(
    cli: Cli,
    form: str | None,
    body_form: str,
    delimiter: str | None,
    with_meta: bool,
    most_rows: int | None,
) -> "Printer":
    """Bodies alone, unless a template, fields or another format are selected."""
    from rmqctl.output.values import bytes_for_terminal
    from rmqctl.parse.lists import parse_delimiter

    from . import printing

    view = cli.view
    shield = bytes_for_terminal if view.terminal else None
    if form is not None and form in set(Format):
        raise UsageProblem(f"--format: {form!r} is no template; the option is --output {form}")
    says = view.nothing if view.terminal else None
    nothing = None if says is None else lambda: says(view.where is not None)
    if form is not None:
        from rmqctl.parse.templates import OutputTemplate, parse_template

        def layout() -> "Layout | None":
            from rmqctl.output.encoded_rows import layout_of_template  # lazy: for many messages

            return None if shield else layout_of_template(parse_template(form), cli.zone)

        template = cli.parsed("--format", lambda text: OutputTemplate(text, cli.zone, shield), form)
        return printing.TemplatePrinter(cli.out, template, layout, nothing)
    if with_meta:
        from rmqctl.output.render import RowStream

        view = view._replace(limit=most_rows)
        values = body_form == "json" and view.format.has_values
        stream = RowStream(JsonMessageRow if values else MessageRow, view, cli.out)
        return printing.RowPrinter(stream, body_form, values=values)
    ends = cli.parsed("--delimiter", parse_delimiter, r"\n" if delimiter is None else delimiter)
    return printing.BodyPrinter(cli.out, ends, body_form, shield, nothing)


def _join(
    cli: Cli,
    reading: _Reading,
    group: "Group",
    chosen: MessageFilter,
    options: "MemberOptions",
    handler: "Handler",
    fields: "frozenset[str] | None",
    *,
    new_group: bool,
) -> None:
    """Consume as a member of the group; ``fields`` as PrintHandler has them."""
    from rmqctl.admin.queues import selection
    from rmqctl.cli.logs import show_logs
    from rmqctl.cli.opening import open_for_writing
    from rmqctl.cli.services import services_by_the_way
    from rmqctl.cli.spans import add_spans

    from . import join
    from .listener import MemberListener
    from .member import MemberRun
    from .outcome import judge_run
    from .quota import Quota

    topic, position = reading.topics[0], reading.position
    limited = reading.ends or reading.most is not None
    config, client_config = join.configs(group, options, limited=limited, ends=reading.ends)
    show_logs(cli)
    with open_for_writing(cli, join.STORE_CHANGES) as broker:
        queues = selection.queues_of(broker, topic, chosen.queues)
        _warn_of_unread_queues(cli, broker, (topic,), chosen)
        if not options.orderly:  # an orderly queue waits at a message that fails by default
            config = join.with_limit_of_group(broker, group, config)
        consumer = join.make_consumer(
            broker, topic, group, config, client_config, chosen.tags, chosen.queues
        )
        add_spans(cli, consumer)
        join.check_group(cli, broker, consumer, topic, chosen.tags)
        if not options.broadcast:
            if not new_group:
                join.check_name(cli, broker, topic, group.name)
            begins = position is not None or group.asked
            join.check_progress(cli, broker, topic, group.name, told_where=begins)
            if position is not None:
                spans = selection.spans(broker, topic, queues, position, group, stop_at_end=False)
                for sentence in selection.words_about(broker, topic, position, spans):
                    cli.warn(sentence)
            begin = position.begin if position else None
            join.place(broker, topic, group, queues, begin, cli.warn)
        ends = None
        if reading.ends:
            end = position.end if position else None
            ends = join.ends_of(broker, topic, group, queues, end)
        consumer.quota = Quota(reading.most, ends, chosen.predicate)
        listening = MemberListener(
            consumer,
            handler,
            consumer.quota,
            exact=config.consume_thread_min == 1 or options.orderly,
            delay_level=options.delay_level or 0,
            tell=cli.warn,
        )
        if options.orderly:
            consumer.register_message_listener_orderly(listening.consume_orderly)
        else:
            consumer.register_message_listener(listening.consume, fields=fields)
        with (
            cli.progress(
                "consume", "messages", lends_stdout=options.command is not None
            ) as progress,
            services_by_the_way(cli, broker),
        ):
            # Without an end there may be no write that fails, and writes of a program fail in it.
            watches = options.command is not None or not reading.ends
            run = MemberRun(consumer, listening, watches_reader=watches)
            run.run(progress)
        dropped = join.why_dropped(broker, consumer) if listening.failed else None
    waits = options.orderly and config.max_reconsume_times == -1
    judge_run(cli, topic, listening, dropped, are_skipped=options.broadcast, waits=waits)


def _run(
    cli: Cli,
    broker: "EmbeddedBroker",
    reading: _Reading,
    group: "Group | None",
    chosen: MessageFilter,
    printer: "Printer",
) -> None:
    from rmqctl.admin.queues import selection

    from .run import ConsumeRun

    by_topic = _spans(broker, reading, group, chosen.queues)
    _warn_of_unread_queues(cli, broker, by_topic, chosen)
    for topic, spans in by_topic.items() if reading.last != 0 else ():
        for sentence in selection.words_about(broker, topic, reading.position, spans):
            cli.warn(sentence)
    whole = [span for spans in by_topic.values() for span in spans]
    with ExitStack() as ends:
        run = ConsumeRun(
            broker,
            _parts(broker, reading, group, chosen, by_topic, printer, ends),
            printer,
            predicate=chosen.predicate,
            count=reading.most,
            follow=reading.follow,
            all_queues=chosen.queues is None,
            tell=cli.warn,
        )
        total = None if reading.most_picked else selection.total(whole, reading.most)
        with cli.progress("consume", "messages", total) as progress:
            run.run(progress)
    if run.unreadable:
        cli.left_out(
            f"{counted(run.unreadable, 'message')} could not be read; 'rmqctl store fsck' shows why"
        )
    names = ", ".join(reading.topics)
    cli.detail(f"read {counted(run.count, 'message')} of {names}")
    if run.packed:
        raise PartlyDone(
            f"left out {counted(run.packed, 'message')} of {names} with a body that cannot be "
            "unpacked; 'rmqctl store fsck' shows which"
        )


def _warn_of_unread_queues(
    cli: Cli, broker: "EmbeddedBroker", topics: "Iterable[str]", chosen: MessageFilter
) -> None:
    """Say which messages are left out by the topics' settings, where no queues were chosen."""
    from rmqctl.admin.queues.selection import words_about_unread_queues

    if chosen.queues is None:
        for topic in topics:
            words = words_about_unread_queues(broker, topic)
            if words is not None:
                cli.warn(words)


def _parts(
    broker: "EmbeddedBroker",
    reading: _Reading,
    group: "Group | None",
    chosen: MessageFilter,
    by_topic: "Mapping[str, list[Span]]",
    printer: "Printer",
    ends: ExitStack,
) -> "list[Part]":
    """The topics with their ways to read: many messages by columns where the printer allows.

    At the end of ``ends`` nothing is read any more.
    """
    from rmqctl.admin.queues import selection
    from rmqctl.admin.queues.cursor import ColumnFetcher, Fetcher, ObjectFetcher
    from rmqctl.admin.queues.in_order import Part

    there = sum(selection.backlog(broker, topic, spans) for topic, spans in by_topic.items())
    few = min(there, there if reading.most is None else reading.most) <= _FEW
    by_columns = not few and (chosen.predicate is None or _by_columns(chosen))
    layout = printer.layout if by_columns else None
    parts = []
    for topic, spans in by_topic.items():
        fetch: Fetcher
        name = group.name if group else _READER
        fetch = objects = ObjectFetcher(broker, topic, name, chosen.tags)
        if layout is not None:
            from rmqctl.admin.queues.read_ahead import MOST_QUEUES, ReadAhead, has_processors

            from .row_fetcher import RowFetcher  # lazy: for many messages only

            fetch = RowFetcher(broker, topic, layout, objects, _column_filter(chosen))
            if len(spans) <= MOST_QUEUES and has_processors():
                fetch = ahead = ReadAhead(
                    fetch, partial(broker.max_offset, topic), alone=bool(chosen.tests)
                )
                ends.callback(ahead.close)
        elif by_columns and chosen.predicate is None and not printer.needs_messages:
            fetch = ColumnFetcher(broker, topic, broker.view.config.max_inflated_body_size, objects)
        parts.append(Part(topic, spans, fetch))
    return parts


def _by_columns(chosen: MessageFilter) -> bool:
    """Whether the tests of a filter take rows of a table."""
    return chosen.tests is not None and all(test.fields is not None for test in chosen.tests)


def _column_filter(chosen: MessageFilter) -> "ColumnFilter | None":
    if not chosen.tests:
        return None
    from .column_filter import ColumnFilter

    return ColumnFilter(chosen.tests)


def _spans(
    broker: "EmbeddedBroker",
    reading: _Reading,
    group: "Group | None",
    wanted: "Sequence[int] | None",
) -> "dict[str, list[Span]]":
    from rmqctl.admin.queues import selection
    from storage.read.log_cut import LogCut

    queues = {topic: selection.queues_of(broker, topic, wanted) for topic in reading.topics}
    if reading.last is not None:
        end = reading.position.end if reading.position else None
        stops = not reading.follow
        return selection.last_spans(broker, queues, reading.last, end, stop_at_end=stops)
    cut = LogCut(broker.view)
    return {
        topic: selection.spans(
            broker, topic, numbers, reading.position, group, stop_at_end=not reading.follow, cut=cut
        )
        for topic, numbers in queues.items()
    }
