"""``rmqctl produce``: send lines, files, JSON or generated messages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import Changes, changes, most_used, refuses
from rmqctl.errors import NotFound, UsageProblem

from .rows import SentRow
from .sources import Input, Portion, Source

if TYPE_CHECKING:
    from broker.api.broker import Broker

    from .rate_limit import Pace
    from .sender import Defaults

_BATCH = 4096
_INPUTS = ("text", "jsonl", "csv", "hex")


@prints(SentRow)
@changes(Changes.RUNS)
@refuses("limit", because="is for rows; --count ends after N messages")
@refuses("where", because="is for rows; produce sends all of its input")
@most_used("--key", "--tag", "--property", "--delay", "--input", "--template")
def produce(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The target topic")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...|-]", help="Files of records (default: standard input)"),
    ] = None,
    queue: Annotated[
        int | None, typer.Option("--queue", "-Q", metavar="N", help="Send to this queue")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", metavar="K", help="Key of the messages; repeatable"),
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Tag of the messages")] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-H", metavar="N=V", help="A property; repeatable"),
    ] = None,
    delay_level: Annotated[
        int | None, typer.Option(metavar="N", help="Delay level 1 (1s) to 18 (2h)")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="DUR", help="Delay the delivery, such as 10s or 5m")
    ] = None,
    delimiter: Annotated[
        str,
        typer.Option(
            "--delimiter", "-D", metavar="D", help=r"End of a record; '' sends a message per file"
        ),
    ] = r"\n",
    key_delimiter: Annotated[
        str | None,
        typer.Option("--key-delimiter", "-K", metavar="D", help="Records are KEYS, D, BODY"),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="FORMAT", help=r"Read records by a template: '%k\t%s'"
        ),
    ] = None,
    input_format: Annotated[
        str, typer.Option("--input", metavar="KIND", help="text, jsonl, csv or hex")
    ] = "text",
    key_fields: Annotated[
        list[str] | None,
        typer.Option(
            "--key-field", metavar="COLUMN", help="Column of CSV with the key; repeatable"
        ),
    ] = None,
    body_field: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of CSV with the body; '*' sends the row as JSON"
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", "-c", metavar="N", min=0, help="Stop after N messages"),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="N/s", help="Most messages per second (or /m, /h)")
    ] = None,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="X", help="Keep the times between stored messages: 1, 0.5 (half as fast), 2x"
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Generate -c N bodies (default: 1): %i counter, %T ms, %d time, %m id",
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option(metavar="N", min=1, help="At most N messages per batch")
    ] = _BATCH,
    sync: Annotated[
        bool | None,
        typer.Option("--sync/--async-flush", help="Wait for the sync of the device, or not"),
    ] = None,
    tee: Annotated[
        bool, typer.Option("--tee", "-T", help="Also print the bodies on stdout")
    ] = False,
    ordering_key: Annotated[
        str | None,
        typer.Option(metavar="K", help="Send equal K to the same queue; %k is the key"),
    ] = None,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="Send empty bodies, which block groups of Java consumers",
        ),
    ] = False,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Skip messages that cannot be sent")
    ] = False,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", help="Ignore unknown fields and columns"),
    ] = False,
) -> None:
    r"""Send messages from lines of standard input or files, JSON lines or CSV.

    JSON lines and CSV have the fields body or body_base64, keys, tags, flag and properties, as in
    the output of 'consume -o jsonl'; its ids, times and offsets are ignored. key, tag, value,
    payload and headers of other tools are accepted, other names are refused. Other columns of CSV
    become properties; --key-field and --body-field name the columns of key and body.

    Without a named store and ./store, the default store is used. It is created on first use if
    standard error is a terminal; a script names its store. Lines of a pipe are stored as they
    arrive. After one message its offset is printed, after several a summary on stderr; -o jsonl
    prints one object per message. Ctrl-C, SIGTERM and --timeout print how many messages are stored,
    failed and unknown (sent, not acknowledged).

    Send one message:             echo hello | rmqctl produce greetings
    With a tag and two keys:      echo hello | rmqctl produce greetings --tag new -k a -k b
    One message per line:         rmqctl produce greetings access.log
    One message per file:         rmqctl produce pictures -D '' cat.png dog.png
    Lines with key and body:      rmqctl produce greetings -K , < pairs.csv
    A CSV file with a header:     rmqctl produce people p.csv --input csv --key-field id \
                                    --body-field '*'
    Copy a topic:                 rmqctl consume a -e -o jsonl | rmqctl produce b --input jsonl
    Replay at half the speed:
        rmqctl consume a --from -1h -e -o jsonl | rmqctl produce b --input jsonl --speed 0.5
    Generated, ten a second:      rmqctl produce load --template 'order %i' -c 100 --rate 10/s
    """
    cli = context_of(ctx)
    if cli.flag("dry_run"):
        raise UsageProblem("produce has no dry run")
    from rmqctl.cli.opening import open_for_writing
    from rmqctl.parse.lists import parse_delimiter

    from .rate_limit import Pace
    from .run import ENDED_EARLY, Limits, ProduceRun

    ends = cli.parsed("--delimiter", parse_delimiter, delimiter)
    pace = Pace(_rate(cli, rate) if rate else None)
    limits = Limits(batch, count, skip_invalid, ends if tee else None, allow_empty)
    level = _level(cli, delay_level, delay)
    defaults = _defaults(topic, queue, key, tag, properties, level, ordering_key)
    _check(defaults)
    _tell_split(cli, key, tag)
    reading = _Reading(
        files or [],
        input_format,
        ends,
        key_delimiter,
        form,
        template,
        ignore_unknown,
        allow_empty,
        tuple(key_fields or ()),
        body_field,
        _speed(cli, speed) if speed else None,
    )
    delimited = ctx.get_parameter_source("delimiter")
    if delimited is None or delimited.name != "COMMANDLINE":
        _tell_lines(cli, reading)
    elif not tee:  # whose output has these ends, whatever the input is
        reading.check_delimiter()
    source = _source(cli, topic, reading, count, min(batch, _BATCH), pace)
    run = ProduceRun(cli, Pace(None) if template is not None else pace, limits)
    try:
        with open_for_writing(cli, flush_change(sync), create=True) as broker:
            _check_queue(cli, broker, defaults)
            if source.total_bytes is not None:
                run.run(broker, source, defaults)
                return
            from rmqctl.cli.services import services_by_the_way

            with services_by_the_way(cli, broker):  # the duration is unknown
                run.run(broker, source, defaults)
    except ENDED_EARLY:
        run.account(topic)
        raise


def _rate(cli: Cli, text: str) -> float:
    from storage.parse.durations import parse_rate

    return cli.parsed("--rate", parse_rate, text)


def _speed(cli: Cli, text: str) -> float:
    from .replay import parse_speed

    return cli.parsed("--speed", parse_speed, text)


class _Reading(NamedTuple):
    """Options for reading records."""

    files: list[str]
    input_format: str
    delimiter: bytes
    key_delimiter: str | None
    form: str | None
    template: str | None
    ignore_unknown: bool
    allow_empty: bool
    key_fields: tuple[str, ...]
    body_field: str | None
    speed: float | None

    def check(self) -> None:
        """Refuse more than one format of records."""
        if self.input_format not in _INPUTS:
            known = ", ".join(_INPUTS)
            raise UsageProblem(f"--input: {self.input_format!r} is not one of {known}")
        ways = {
            "--template": self.template is not None,
            "--format": self.form is not None,
            "--key-delimiter": self.key_delimiter is not None,
            "--input": self.input_format != "text",
        }
        asked = [name for name, given in ways.items() if given]
        if len(asked) > 1:
            raise UsageProblem(f"{' and '.join(asked)} exclude each other")
        if self.ignore_unknown and self.input_format not in ("jsonl", "csv"):
            raise UsageProblem("--ignore-unknown needs --input jsonl or --input csv")
        if (self.key_fields or self.body_field) and self.input_format != "csv":
            name = "--key-field" if self.key_fields else "--body-field"
            raise UsageProblem(f"{name} needs --input csv")
        if self.speed is not None and self.input_format not in ("jsonl", "csv"):
            raise UsageProblem(
                "--speed needs the times of stored messages: --input jsonl with the output of "
                "'consume -o jsonl' or 'message export'"
            )
        if self.template is not None and self.files:
            raise UsageProblem("--template and FILE exclude each other")

    def check_delimiter(self) -> None:
        """Refuse ends of records where the input has its own, or where there is none."""
        for other, given in (
            ("--input csv", self.input_format == "csv"),
            ("--template", self.template is not None),
        ):
            if given:
                raise UsageProblem(f"--delimiter and {other} exclude each other")


def _defaults(
    topic: str,
    queue: int | None,
    key: list[str] | None,
    tag: str | None,
    properties: list[str] | None,
    level: int,
    ordering_key: str | None,
) -> "Defaults":
    from rmqctl.parse.lists import parse_properties

    from .sender import Defaults

    try:
        named = parse_properties(properties or ())
    except ValueError as error:
        raise UsageProblem(str(error)) from None
    keys = " ".join(key) if key else None
    return Defaults(topic, keys, tag or None, named, level, queue, ordering_key)


def _tell_split(cli: Cli, keys: list[str] | None, tag: str | None) -> None:
    """Warn of a key that is several keys, and of a tag that no subscription can name."""
    from storage.format.message import split_keys

    for key in keys or ():
        parts = split_keys(key)
        if len(parts) > 1:
            cli.warn(
                f"--key {key!r} is {len(parts)} keys, as RocketMQ splits keys at blanks: "
                f"{', '.join(map(repr, parts))}; none of them is {key!r}"
            )
    if tag is not None and "||" in tag:
        cli.warn(
            f"--tag {tag!r} is one tag that contains ||; || means 'or' in a subscription, so no "
            "subscription can name this tag"
        )


def _level(cli: Cli, level: int | None, delay: str | None) -> int:
    """The delay level of the options, 0 for none; it must be a level of the store.

    RocketMQ has no other delays, and uses the last level for all higher ones.
    """
    if not level and delay is None:
        return 0
    from storage.parse.durations import format_duration, parse_duration

    delays = _delays(cli)
    names = [format_duration(ms) for ms in delays]
    if delay is not None:
        wanted = cli.parsed("--delay", parse_duration, delay)
        if wanted not in delays:
            raise UsageProblem(f"--delay: {delay} is not the delay of a level ({', '.join(names)})")
        return delays.index(wanted) + 1
    if level is not None and level > len(delays):
        raise UsageProblem(
            f"--delay-level: {level} is not a level: levels are 1 ({names[0]}) "
            f"to {len(names)} ({names[-1]})"
        )
    return level or 0


def _delays(cli: Cli) -> tuple[int, ...]:
    """The delays of the levels from 1 on, in ms, of the store or of the one to be created."""
    from storage.detect import detect_config
    from storage.errors import StoreNotFoundError
    from storage.format.delay import parse_delay_levels

    try:
        return parse_delay_levels(detect_config(cli.store.path).message_delay_level)
    except StoreNotFoundError:
        return parse_delay_levels()


def _check(defaults: "Defaults") -> None:
    """Refuse invalid options before a store is opened or created."""
    from broker.validation import (
        check_delay_level,
        check_properties,
        check_properties_size,
        check_send_topic,
        check_user_property,
    )
    from storage.format.properties import encode_properties

    check_send_topic(defaults.topic)
    check_delay_level(defaults.delay_time_level)
    for name, value in (defaults.properties or {}).items():
        check_user_property(name, value)
    shared = {"KEYS": defaults.keys or "", "TAGS": defaults.tags or ""}
    check_properties(shared)
    check_properties_size(encode_properties({**(defaults.properties or {}), **shared}))
    if defaults.queue_id is not None and defaults.queue_id < 0:
        raise UsageProblem(f"--queue: {defaults.queue_id} is not a queue number")


def _check_queue(cli: Cli, broker: "Broker", defaults: "Defaults") -> None:
    """Refuse a queue that the topic does not have, before an unknown topic is created; warn of
    queues on disk that a created topic does not have."""
    from broker.api.send import DEFAULT_TOPIC_QUEUE_NUMS

    queue_id = defaults.queue_id
    config = broker.topic(defaults.topic)
    first_send = config is None or config.derived
    if config and first_send and config.read_queue_nums > DEFAULT_TOPIC_QUEUE_NUMS:
        cli.warn(
            f"topic {defaults.topic} has no settings; the first send makes some of "
            f"{DEFAULT_TOPIC_QUEUE_NUMS} queues, and no group reads its queues from "
            f"{DEFAULT_TOPIC_QUEUE_NUMS} to {config.read_queue_nums - 1} then; 'rmqctl topic alter "
            f"{defaults.topic} --read-queue-nums {config.read_queue_nums}' changes that"
        )
    if queue_id is None:
        return
    count = DEFAULT_TOPIC_QUEUE_NUMS if config is None or first_send else config.write_queue_nums
    if queue_id >= count:
        gets = "gets" if first_send else "has"
        how_many = {0: "no write queues", 1: "one, queue 0"}.get(count, f"{count}, numbered from 0")
        raise NotFound(f"topic {defaults.topic} has no queue {queue_id}: it {gets} {how_many}")


def _source(
    cli: Cli, topic: str, reading: _Reading, count: int | None, batch: int, pace: "Pace"
) -> Source:
    """The messages to send; ``pace`` is that of generated ones, which are filled when due."""
    reading.check()
    if reading.template is not None:
        from .generator import generated_portions

        amount = 1 if count is None else count
        portions = cli.parsed(
            "--template",
            lambda text: generated_portions(text, topic, amount, batch, cli.zone, pace.portion),
            reading.template,
        )
        if count is None:
            cli.say("--template sends one message; --count N sends N")
        return Source(portions, None)
    given = Input(
        reading.files,
        reading.delimiter,
        _longest_record(reading),
        keeps_empty=reading.allow_empty,
    )
    if given.from_terminal:
        cli.say("reading messages from the terminal, one per line; Ctrl-D ends")
    portions = _portions(cli, given, reading)
    if reading.speed is not None:
        from .replay import replayed

        portions = replayed(portions, reading.speed, zone=cli.zone)
    return Source(portions, given.total_bytes, given)


def _end_of(name: str) -> str:
    return name[name.rfind(".") :].lower() if "." in name else ""


def _tell_lines(cli: Cli, reading: _Reading) -> None:
    """Say that files are read by lines: other tools send one message per file, or read CSV."""
    plain = reading.form is None and reading.key_delimiter is None
    kinds = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    kind = next((kinds[end] for end in map(_end_of, reading.files) if end in kinds), None)
    if kind is not None and reading.input_format == "text" and plain:
        cli.say(f"each line is a message; --input {kind} reads keys, bodies and properties")
        return
    if len(reading.files) > 1 and reading.input_format == "text" and plain:
        cli.say(
            f"each line of the {len(reading.files)} files is a message; -D '' sends one message "
            "per file"
        )


def _portions(cli: Cli, given: Input, reading: _Reading) -> Iterator[Portion]:
    if reading.form is None and reading.key_delimiter is None and reading.input_format == "text":
        return given.bodies()
    from rmqctl.parse.lists import parse_delimiter

    from . import parsers

    if reading.form is not None:
        ends = reading.delimiter
        if reading.form in _INPUTS:
            raise UsageProblem(
                f"--format: {reading.form!r} is no template; the option is --input {reading.form}"
            )
        return given.parsed(
            cli.parsed("--format", lambda text: parsers.template_parser(text, ends), reading.form)
        )
    if reading.key_delimiter is not None:
        between = cli.parsed("--key-delimiter", parse_delimiter, reading.key_delimiter)
        if not between:
            raise UsageProblem("--key-delimiter is empty")
        return given.parsed(parsers.keyed_parser(between))
    match reading.input_format:
        case "csv":
            return given.csv(
                ignore_unknown=reading.ignore_unknown,
                tell=cli.say,
                key_fields=reading.key_fields,
                body_field=reading.body_field,
                key_hint="; --key-field COLUMN makes one the key",
                by_columns=reading.speed is None,
            )
        case "jsonl":
            from .given_rows import json_reader

            ignore = reading.ignore_unknown
            return given.parsed(
                lambda line: parsers.parse_json(line, ignore_unknown=ignore),
                strips=True,
                reader=json_reader(has_places=False) if reading.speed is None else None,
            )
        case _:
            return given.parsed(parsers.parse_hex, strips=not reading.allow_empty)


def _longest_record(reading: _Reading) -> int:
    """Most bytes of a record that can become a message.

    JSON may need six bytes for one of the body (backslash, u and four digits), plus the properties.
    """
    from broker.validation import MAX_MESSAGE_SIZE, MAX_PROPERTIES_LENGTH

    if reading.input_format == "text" and reading.form is None and reading.key_delimiter is None:
        return MAX_MESSAGE_SIZE
    return 6 * (MAX_MESSAGE_SIZE + MAX_PROPERTIES_LENGTH)


def flush_change(sync: bool | None) -> dict[str, Any]:
    """Settings of the store that the call overrides for itself."""
    if sync is None:
        return {}
    from storage.config import FlushDiskType

    kind = FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH
    return {"flush_disk_type": kind}
