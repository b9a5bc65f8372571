"""``rmqctl bench produce``, ``consume`` and ``both``: load, and how long messages take."""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.errors import NotFound, Refused, UsageProblem

from .rows import BenchResult

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .load import Plan
    from .reader_process import ReaderProcess

OWN_TOPIC = "rmqctl-bench"
"""The topic of a load without a name; names that begin with it are topics of loads, too."""
_DURATION = "10s"

_Topic = Annotated[
    str, typer.Argument(metavar="[TOPIC]", help="The topic, created if it is missing")
]
_Rate = Annotated[
    str | None, typer.Option(metavar="N/s", help="Messages per second (default: most possible)")
]
_Duration = Annotated[
    str | None,
    typer.Option(metavar="DUR", help="How long to measure (default: 10s, none with --count)"),
]
_Count = Annotated[
    int | None,
    typer.Option("--count", "-c", metavar="N", min=1, help="Measure N messages"),
]
_WarmUp = Annotated[
    str, typer.Option("--warm-up", metavar="DUR", help="How long to send before measuring")
]
_Size = Annotated[str | None, typer.Option(metavar="BYTES", help="Size of each body (default: 1K)")]
_Template = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Bodies by a template of produce, in place of --size"),
]
_Queues = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Queues of a new topic (default: 4)")
]
_Batch = Annotated[int, typer.Option(metavar="N", min=1, help="Messages per send")]
_Threads = Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Threads that send")]
_Sync = Annotated[
    bool | None,
    typer.Option("--sync/--async-flush", help="Wait for the sync of the device, or not"),
]
_Existing = Annotated[
    bool,
    typer.Option("--existing", help=f"Send to an existing topic that is not {OWN_TOPIC}..."),
]
_Delete = Annotated[
    bool, typer.Option("--delete-topic", help="Delete the topic when the load has ended")
]
_Pull = Annotated[int, typer.Option(metavar="N", min=1, help="Most messages per pull")]


@prints(BenchResult)
@changes(Changes.RUNS)
@most_used("--rate", "--duration", "--count", "--size", "--delete-topic")
def produce(
    ctx: typer.Context,
    topic: _Topic = OWN_TOPIC,
    rate: _Rate = None,
    duration: _Duration = None,
    count: _Count = None,
    warm_up: _WarmUp = "1s",
    size: _Size = None,
    template: _Template = None,
    queues: _Queues = None,
    batch: _Batch = 1,
    threads: _Threads = 1,
    sync: _Sync = None,
    existing: _Existing = False,
    delete_topic: _Delete = False,
) -> None:
    """Send messages at an even rate, and measure how long their acknowledgements take.

    Each message is due at a fixed time, however long those before it took; a batch is due as one.
    Latencies count from that time, so a store that stops for a while makes all messages late that
    were due meanwhile. Pacing is the part of it before the send.

    The messages stay in the store until its old files are deleted, --delete-topic or not. An
    existing topic is refused without --existing. --progress plain prints a line each second.

    5,000 a second for 10 seconds:   rmqctl bench produce --rate 5000/s
    As fast as possible:             rmqctl bench produce --batch 1000 --duration 30s
    With a sync for each:            rmqctl bench produce --sync --threads 4 -o json
    """
    cli = context_of(ctx)
    wanted = Options(
        *(topic, rate, duration, count, warm_up, size, template, queues, batch, threads, sync),
        *(existing, delete_topic),
    )
    wanted.run(cli, None)


@prints(BenchResult)
@changes(Changes.RUNS)
@most_used("--rate", "--duration", "--count", "--size", "--threads", "--delete-topic")
def both(
    ctx: typer.Context,
    topic: _Topic = OWN_TOPIC,
    rate: _Rate = None,
    duration: _Duration = None,
    count: _Count = None,
    warm_up: _WarmUp = "1s",
    size: _Size = None,
    template: _Template = None,
    queues: _Queues = None,
    batch: _Batch = 1,
    threads: _Threads = 1,
    sync: _Sync = None,
    pull: _Pull = 32,
    existing: _Existing = False,
    delete_topic: _Delete = False,
) -> None:
    """Send at an even rate, read in a second process, and measure both.

    As 'bench produce'; the end-to-end latency is from when a message was due to when the reader
    had it. The reader is no member of a group, so no progress of a group moves.

    Latency at 5,000 a second:       rmqctl bench both --rate 5000/s
    Of one percentile, by a script:  rmqctl bench both --rate 100/s -o json | jq .end_to_end_us.p99
    """
    cli = context_of(ctx)
    wanted = Options(
        *(topic, rate, duration, count, warm_up, size, template, queues, batch, threads, sync),
        *(existing, delete_topic),
    )
    wanted.run(cli, pull)


@prints(BenchResult)
def consume(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="The topic")] = OWN_TOPIC,
    count: _Count = None,
    duration: Annotated[
        str | None,
        typer.Option(metavar="DUR", help="Stop after this time (default with --follow: 10s)"),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-F", help="Read new messages of a 'bench produce', not old ones"),
    ] = False,
    pull: _Pull = 32,
) -> None:
    """Read a topic from its beginning to its end, as fast as possible, and measure the rate.

    With --follow, new messages are read as they arrive, for the duration; those of a 'bench
    produce' on this machine give the end-to-end latency. No progress of a group moves.

    Read all of a topic:             rmqctl bench consume orders
    Beside 'bench produce':          rmqctl bench consume --follow --duration 30s
    """
    cli = context_of(ctx)
    _no_dry_run(cli)
    from rmqctl.cli.opening import open_for_reading, open_for_writing
    from storage.parse.durations import parse_duration

    limit = duration if duration is not None or not follow else _DURATION
    limit_ms = None if limit is None else cli.parsed("--duration", parse_duration, limit)
    # A process that only reads polls for new messages; consumers are woken.
    with open_for_writing(cli) if follow else open_for_reading(cli) as broker:
        from .run import receive

        if broker.topic(topic) is None:
            raise NotFound(f"there is no topic {topic}; 'rmqctl bench produce' creates one")
        receive(cli, broker, topic, pull, count, limit_ms, follow=follow)


class Options(NamedTuple):
    """The options of the sending side."""

    topic: str
    rate: str | None
    duration: str | None
    most: int | None
    warm_up: str
    size: str | None
    template: str | None
    queues: int | None
    batch: int
    threads: int
    sync: bool | None
    existing: bool
    delete_topic: bool

    def run(self, cli: Cli, pull: int | None) -> None:
        """Send, print the result, delete the topic if asked to; ``pull``: read as well."""
        _no_dry_run(cli)
        plan = self._plan(cli)
        if self.existing and self.delete_topic:
            raise UsageProblem("--existing and --delete-topic exclude each other")
        from rmqctl.cli.opening import open_for_writing
        from rmqctl.produce.command import flush_change

        from .reader_process import reader_process
        from .run import at_the_ends, send

        reader: AbstractContextManager[ReaderProcess | None] = nullcontext()
        if pull is not None:
            reader = reader_process(lambda: at_the_ends(cli.store.path, self.topic, pull))
        with reader as process, open_for_writing(cli, flush_change(self.sync)) as broker:
            self._make_topic(broker)
            send(cli, broker, plan, process, pull)
        if self.delete_topic:
            _delete(cli, self.topic)

    def _plan(self, cli: Cli) -> "Plan":
        from broker.validation import BODY_LENGTH_ZERO, MAX_MESSAGE_SIZE, check_send_topic
        from rmqctl.topic.change_commands import checked_count
        from storage.parse.durations import parse_duration, parse_rate, parse_size

        from .bodies import STAMP_BYTES, sized_bodies, template_bodies
        from .load import Plan

        check_send_topic(self.topic)
        if self.queues is not None:
            checked_count("--queues", self.queues)
        size = cli.parsed("--size", parse_size, self.size or "1K")
        if not STAMP_BYTES <= size <= MAX_MESSAGE_SIZE:
            raise UsageProblem(
                f"--size: {self.size} is not from {STAMP_BYTES} (each body has the time when it "
                f"was due) to {MAX_MESSAGE_SIZE} bytes"
            )
        if self.template is not None and self.size is not None:
            raise UsageProblem("--size and --template exclude each other")
        bodies = sized_bodies(size)
        if self.template is not None:
            bodies = cli.parsed(
                "--template",
                lambda text: template_bodies(text, self.topic, cli.zone),
                self.template,
            )
            if not bodies(1, 1, b"")[0]:
                raise UsageProblem(f"--template: {BODY_LENGTH_ZERO}")
        duration = self.duration
        if duration is None and self.most is None:
            duration = _DURATION
        ms = 1_000_000
        return Plan(
            topic=self.topic,
            bodies=bodies,
            by_property=self.template is not None,
            rate=None if self.rate is None else cli.parsed("--rate", parse_rate, self.rate),
            batch=self.batch,
            threads=self.threads,
            warm_up_ns=cli.parsed("--warm-up", parse_duration, self.warm_up) * ms,
            duration_ns=(
                None
                if duration is None
                else cli.parsed("--duration", parse_duration, duration) * ms
            ),
            most=self.most,
        )

    def _make_topic(self, broker: "EmbeddedBroker") -> None:
        """Create the topic, or its settings for all queues that are on disk; Refused if one exists
        that a load may not use."""
        from broker.api.send import DEFAULT_TOPIC_QUEUE_NUMS
        from storage.configs.topics import TopicConfig

        config = broker.topic(self.topic)
        if config and not self.existing and not self.topic.startswith(OWN_TOPIC):
            raise Refused(
                f"topic {self.topic} exists, and its consumers would get the load; name another "
                "topic, or add --existing"
            )
        if config is None or config.derived:
            on_disk = 0 if config is None else config.read_queue_nums
            queues = max(self.queues or DEFAULT_TOPIC_QUEUE_NUMS, on_disk)
            broker.update_topic(TopicConfig(self.topic, queues, queues))
        elif self.queues not in (None, config.write_queue_nums):
            has = config.write_queue_nums
            raise Refused(
                f"topic {self.topic} exists with {has} {'queue' if has == 1 else 'queues'}, not "
                f"{self.queues}; name another topic, or leave out --queues"
            )


def _no_dry_run(cli: Cli) -> None:
    if cli.flag("dry_run"):
        raise UsageProblem("bench has no dry run")


def _delete(cli: Cli, topic: str) -> None:
    from rmqctl.admin.journal_entry import change_note
    from rmqctl.admin.topics.deletion import delete
    from rmqctl.cli.opening import view_for_change

    with view_for_change(cli) as view:
        delete(view, topic).apply(change_note(cli, topic=topic))
    cli.say(f"deleted the topic {topic}; its messages stay in the log until its files are deleted")
