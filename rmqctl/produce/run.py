"""One run of ``produce``: sends portions in batches, prints and counts acknowledgements."""

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl import exit_codes
from rmqctl.cli.context import Cli
from rmqctl.cli.gc_tuning import keep_freed_memory
from rmqctl.cli.signals import Terminated, TimeLimit
from rmqctl.errors import CliError, OutputFailed, PartlyDone
from rmqctl.output.last_line import LAST_LINE
from storage.errors import RocketMQError
from storage.format.message import split_keys

from .rows import SentRow, sent_rows
from .sender import Defaults, InvalidRecordError, Sender
from .sources import STDIN, Portion, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.api.send import ColumnSendResult
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.output.render import RowStream

    from .rate_limit import Pace
    from .timings import Timings

BATCH_BYTES: Final = 1 << 20
"""Most bytes of bodies per batch: larger batches do not fit into the processor's caches."""
_MANY: Final = 1000
"""If so many records arrive together, many more are likely to follow."""

BREAKS_OFF: Final = (RocketMQError, OSError, CliError)
"""What ends a run: of the store, of a file, of its header, of the output."""

ENDED_EARLY: Final = (KeyboardInterrupt, Terminated, TimeLimit)
"""Ctrl-C, SIGTERM and --timeout."""


class Limits(NamedTuple):
    """Options for sending messages."""

    batch: int
    most: int | None
    """Most messages to send."""
    skip_invalid: bool
    tee: bytes | None
    """The delimiter after bodies that are also printed; None prints no bodies."""
    allow_empty: bool = False
    """Whether messages with an empty body are sent."""


def _timings(cli: Cli) -> "Timings | None":
    if not (cli.flag("verbose") or cli.flag("debug")):
        return None
    from .timings import Timings

    return Timings()


class ProduceRun:
    """Sends the messages of a source; see :meth:`run`."""

    def __init__(self, cli: Cli, pace: "Pace", limits: Limits, *, to: str | None = None) -> None:
        """``to`` names the target in the summary, if it is not one topic."""
        self._to = to
        self._cli = cli
        self._pace = pace
        self._limits = limits
        self._rows = cli.row_stream(SentRow) if cli.setting("output") else None
        self._first: ColumnSendResult | None = None
        self._invalid: list[InvalidRecordError] = []
        self._ended: InvalidRecordError | None = None
        """The record after which nothing is read."""
        self._keeps_memory = False
        self._sender: Sender | None = None
        self._accounted = False
        self._timings = _timings(cli)
        self._divided: list[tuple[int, str]] = []
        """Line and key of each message with a key that is several."""

    def run(self, broker: "EmbeddedBroker", source: Source, defaults: Defaults) -> None:
        """Send all messages and print a summary; PartlyDone (8 or 2) if some could not be sent.

        An error that stops it, such as a full disk, includes the number of stored messages:
        repeating the whole call would store them twice. Ctrl-C, SIGTERM and a time limit print how
        many messages are stored, failed and unknown.
        """
        sender = Sender(broker, defaults, self._acknowledge, allow_empty=self._limits.allow_empty)
        self._sender = sender
        try:
            self._run(broker, source, sender, self._to or defaults.topic)
        except ENDED_EARLY:
            self.account(self._to or defaults.topic)
            end_rows(self._cli, self._rows, sender.count)
            raise

    def account(self, topic: str) -> None:
        """Print what became of the messages of a run that was ended early, once.

        It is part of the report of the interruption, so ``--quiet`` does not silence it.
        """
        if self._accounted:
            return
        self._accounted = True
        stored = unknown = 0
        if self._sender is not None:
            stored, unknown = self._sender.count, self._sender.unknown
        tell_ended_early(topic, stored, len(self._invalid), unknown)

    def _run(self, broker: "EmbeddedBroker", source: Source, sender: Sender, topic: str) -> None:
        with self._cli.progress("produce", "messages", source.total_bytes) as progress:
            passed = 0
            try:
                for portion in source.portions:
                    sent, before = sender.count, passed
                    self._send(sender, portion)
                    passed = source.passed(portion, before)
                    progress.advance(sender.count - sent, passed - before)
                    broker.tick()
                    if self._left(sender) == 0:
                        break
            except InvalidRecordError as error:
                self._invalid.append(error)
                self._ended = error
            except BREAKS_OFF as error:
                if source.given is not None:
                    source.given.tell_blank(self._cli.say)
                raise after_some(error, sender.count, self._rows) from error
            elapsed_ms = progress.elapsed_ms()
        if source.given is not None:
            source.given.tell_blank(self._cli.say)
        try:
            self._print(sender, elapsed_ms, topic)
        except OutputFailed as error:
            raise after_some(error, sender.count, self._rows) from error
        self._accounted = True
        self._judge(sender, source.given.empty if source.given is not None else ())

    def _left(self, sender: Sender) -> int | None:
        """Number of messages that may still be sent; None for no limit."""
        return None if self._limits.most is None else self._limits.most - sender.count

    def _send(self, sender: Sender, portion: Portion) -> None:
        """Send one portion in batches, at the given rate."""
        bodies = portion.bodies if portion.rows is None else portion.rows.bodies
        if bodies is None:
            bodies = [message.body for message in portion.messages]
        if len(bodies) >= _MANY and not self._keeps_memory:
            keep_freed_memory()
            self._keeps_memory = True
        at = 0
        while at < len(bodies) and self._left(sender) != 0:
            most = min(self._limits.batch, self._left(sender) or len(bodies), len(bodies) - at)
            size = self._pace.portion(_batch_size(bodies, at, at + most))
            before = sender.count
            try:
                with self._timings.one() if self._timings else nullcontext():
                    lines = portion.lines[at : at + size]
                    if portion.bodies is not None:
                        sender.send_bodies(bodies[at : at + size], portion.lines[at])
                    elif portion.rows is not None:
                        sender.send_rows(portion.rows.part(at, at + size), lines)
                    else:
                        sender.send(portion.messages[at : at + size], lines)
            except (InvalidRecordError, *BREAKS_OFF) as error:
                sent = sender.count - before
                if not isinstance(error, OutputFailed):
                    self._show(bodies[at : at + sent])
                self._note_divided(portion, at, at + sent)
                if not isinstance(error, InvalidRecordError):
                    raise
                self._note(error)
                at += sent + 1
            else:
                self._show(bodies[at : at + size])
                self._note_divided(portion, at, at + size)
                at += size
        if portion.invalid is not None and self._left(sender) != 0:
            self._note(portion.invalid)

    def _note(self, error: InvalidRecordError) -> None:
        if not self._limits.skip_invalid:
            raise error
        self._invalid.append(error)

    def _note_divided(self, portion: Portion, begin: int, end: int) -> None:
        """Note the keys of messages [begin, end), which were sent."""
        self._divided += [
            (line, message.divided_key)
            for line, message in zip(
                portion.lines[begin:end], portion.messages[begin:end], strict=False
            )
            if message.divided_key is not None
        ]

    def _show(self, bodies: list[bytes]) -> None:
        """Print acknowledged messages, and flush the output."""
        tee = self._limits.tee
        if tee is not None:
            self._cli.out.write_bytes(b"".join([body + tee for body in bodies]))
        if self._rows is not None:
            self._rows.flush()
        elif tee is not None:
            self._cli.out.flush()

    def _acknowledge(self, result: "ColumnSendResult") -> None:
        if self._rows is not None:
            self._rows.write(sent_rows(result))
        elif self._first is None:
            self._first = result

    def _print(self, sender: Sender, elapsed_ms: int, topic: str) -> None:
        if self._rows is not None:
            self._rows.finish()
        elif sender.count == 1 and self._first is not None and self._limits.tee is None:
            row = next(sent_rows(self._first))
            self._cli.out.write("\t".join(map(str, row)) + "\n")
        self._cli.out.flush()
        if sender.count != 1 and (not self._invalid or self._limits.skip_invalid):
            self._cli.say(_summary(sender, elapsed_ms, topic))
        if self._divided:
            self._cli.warn(_words_about_divided(self._divided))
        if self._timings is not None:
            self._cli.detail(self._timings.sentence())

    def _judge(self, sender: Sender, empty: "Sequence[str]") -> None:
        code = exit_codes.PARTLY if sender.count else exit_codes.USAGE
        if empty and self._invalid:
            self._cli.warn(_words_about_empty(empty))
        if self._invalid and self._limits.skip_invalid:
            left_out = f"left out {_counted(len(self._invalid), 'message')} that cannot be sent"
            raise PartlyDone(f"{left_out}; {first_of(self._invalid, self._ended)}", code)
        if self._invalid:
            sent = _counted(sender.count, "before it is", "before it are")
            before = f"the {sent} sent, " if sender.count else ""
            after = "nothing after it" if sender.count else "nothing was sent"
            raise PartlyDone(f"{self._invalid[0]}; {before}{after}", code)
        if empty:
            raise PartlyDone(_words_about_empty(empty), code)
        check_flushed(sender.not_flushed)


def after_some(error: Exception, stored: int, rows: "RowStream | None") -> Exception:
    """The exception for an error that ends a run after so many stored messages; ``rows`` are
    ended."""
    if not stored or isinstance(error, BrokenPipeError):
        return error
    if rows is not None and not isinstance(error, OutputFailed):
        rows.finish()
    before = _counted(stored, "message before is", "messages before are")
    return PartlyDone(f"{error}; the {before} stored")


def tell_ended_early(topic: str, stored: int, failed: int, unknown: int) -> None:
    """Print what became of the messages of a run that was ended early."""
    doubt = " (sent, not acknowledged: stored or not)" if unknown else ""
    LAST_LINE.print(
        f"ended early: {_counted(stored, 'message')} stored in {topic}, "
        f"{failed:,} failed, {unknown:,} unknown{doubt}",
        level="warning",
    )


def end_rows(cli: Cli, rows: "RowStream | None", stored: int) -> None:
    """End the rows of a run that was ended early, if it stored messages."""
    if rows is not None and stored:
        with suppress(OSError, OutputFailed):  # the run ends with why it was ended
            rows.finish()
            cli.out.flush()


def first_of(invalid: "Sequence[InvalidRecordError]", ended: InvalidRecordError | None) -> str:
    """The first record that was left out, and the one after which nothing is read."""
    end = f"; nothing after line {ended.line} is read" if ended else ""
    return f"the first: {invalid[0]}{end}"


def check_flushed(not_flushed: int) -> None:
    """PartlyDone for stored messages that the device did not confirm in time."""
    if not_flushed:
        stored = _counted(not_flushed, "message is", "messages are")
        raise PartlyDone(f"{stored} stored, but not confirmed by the device")


def _batch_size(bodies: list[bytes], at: int, end: int) -> int:
    """Number of bodies for one batch: as many as fit into BATCH_BYTES, at least one."""
    if end - at == 1 or sum(map(len, bodies[at:end])) <= BATCH_BYTES:
        return end - at
    size = 0
    for i in range(at, end):
        size += len(bodies[i])
        if size > BATCH_BYTES:
            return max(1, i - at)
    return end - at


def _words_about_empty(files: "Sequence[str]") -> str:
    """``files`` were to be a message each."""
    from rmqctl.admin.left_out import MOST_NAMED  # lazy: it is rare

    named = ", ".join("standard input" if name == STDIN else name for name in files[:MOST_NAMED])
    more = len(files) - MOST_NAMED
    if more > 0:
        named += f" and {more:,} more"
    which = "which is empty" if len(files) == 1 else "which are empty"
    return f"left out {named}, {which}; --allow-empty sends empty bodies"


def _words_about_divided(divided: "Sequence[tuple[int, str]]") -> str:
    (line, key), more = divided[0], len(divided) - 1
    others = "; 1 more line has such a key" if more else ""
    if more > 1:
        others = f"; {more:,} more lines have such keys"
    count = len(split_keys(key))
    return (
        f"line {line}: the key {key!r} is {count} keys, as RocketMQ splits keys at blanks{others}"
    )


def _summary(sender: Sender, elapsed_ms: int, topic: str) -> str:
    from storage.parse.durations import format_duration, format_size

    count = sender.count
    speed = f", {count * 1000 / elapsed_ms:,.0f} msgs/s" if elapsed_ms and count else ""
    return (
        f"sent {_counted(count, 'message')} ({format_size(sender.bytes)} bytes) to {topic} "
        f"in {format_duration(elapsed_ms)}{speed}"
    )


def _counted(number: int, one: str, many: str | None = None) -> str:
    from storage.counted import counted  # most runs print no sentence

    return counted(number, one, many)
