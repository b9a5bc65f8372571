"""``message import --keep-times``: appends messages to the log with their original times.

Store times do not decrease within a log: searches of queues and the start of recovery depend on
it. So the times of the file must not decrease either, starting at the store's last one; any other
message is refused.
"""

from typing import TYPE_CHECKING

import numpy as np

from broker.validation import BODY_LENGTH_ZERO
from rmqctl import exit_codes
from rmqctl.admin.known_topics import INNER_TOPICS
from rmqctl.errors import CliError, OutputFailed, PartlyDone, Refused
from rmqctl.produce.rows import SentRow
from rmqctl.produce.run import (
    BREAKS_OFF,
    ENDED_EARLY,
    after_some,
    check_flushed,
    end_rows,
    first_of,
    tell_ended_early,
)
from rmqctl.produce.sender import InvalidRecordError
from storage.counted import counted
from storage.errors import InvalidMessageError
from storage.format.message import LMQ_PREFIX, MessageExt
from storage.format.message_id import offset_msg_id
from storage.parse.times import format_time
from storage.results import PutMessageStatus
from storage.tools.carve.columns import ExactEncoder
from storage.tools.carve.records import record_of

from .target_queues import TargetQueues

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli
    from rmqctl.produce.sources import Portion, Source

    from .import_reader import TopicMap

_AHEAD_MS = 60_000
"""Allowed difference of the clocks of two machines."""


class ImportTargets:
    """The topics and queues that messages with their own times are stored in."""

    def __init__(self, topics: "TopicMap", queues: TargetQueues) -> None:
        self._topics = topics
        self.queue = queues.queue
        self.make = queues.make

    def target(self, topic: str | None) -> str:
        """The target topic for messages of a topic. ValueError for an impossible one."""
        target = self._topics.target(topic)
        if not target:
            raise ValueError("names no topic; --topic sets one")
        is_mapped = topic in self._topics.mapped
        if not is_mapped and (target in INNER_TOPICS or target.startswith(LMQ_PREFIX)):
            raise ValueError(
                f"was in {target}, an internal topic of the broker; --map-topic stores it elsewhere"
            )
        return target


class KeptTimesImport:
    """One import; see :meth:`run`."""

    def __init__(
        self,
        cli: "Cli",
        broker: "EmbeddedBroker",
        targets: ImportTargets,
        *,
        skip_invalid: bool,
        allow_empty: bool,
    ) -> None:
        self._cli = cli
        self._broker = broker
        self._targets = targets
        self._skip_invalid = skip_invalid
        self._allow_empty = allow_empty
        self._newest = 0  # store time of the last message so far
        self._rows = cli.row_stream(SentRow) if cli.setting("output") else None
        self._invalid: list[InvalidRecordError] = []
        self._ended: InvalidRecordError | None = None
        """The record after which nothing is read."""
        self.attempted = 0
        """Messages given to the store; those that it refused are not counted."""
        self.count = 0
        """Number of stored messages."""
        self.not_flushed = 0
        """Stored messages whose flush was not confirmed."""

    def run(self, source: "Source", *, to: str) -> None:
        """Store all messages and print a summary; PartlyDone (8 or 2) if some were refused.

        An error that stops it includes the number of stored messages: the same import would be
        refused, as store times must not decrease. Ctrl-C, SIGTERM and a time limit print how many
        are stored, failed and unknown. ``to`` names the target there.
        """
        try:
            self._run(source)
        except ENDED_EARLY:
            unknown = self.attempted - self.count
            tell_ended_early(to, self.count, len(self._invalid), unknown)
            end_rows(self._cli, self._rows, self.count)
            raise
        self._judge()

    def _run(self, source: "Source") -> None:
        with self._cli.progress("import", "messages", source.total_bytes) as progress:
            passed = 0
            try:
                for portion in source.portions:
                    count, before = self.count, passed
                    self._put(portion)
                    passed = source.passed(portion, before)
                    progress.advance(self.count - count, passed - before)
            except InvalidRecordError as error:
                self._invalid.append(error)
                self._ended = error
            except BREAKS_OFF as error:
                if source.given is not None:
                    source.given.tell_blank(self._cli.say)
                raise after_some(error, self.count, self._rows) from error
        if source.given is not None:
            source.given.tell_blank(self._cli.say)
        if self._rows is not None:
            try:
                self._rows.finish()
                self._cli.out.flush()
            except OutputFailed as error:
                raise after_some(error, self.count, self._rows) from error

    def _put(self, portion: "Portion") -> None:
        ready: list[MessageExt] = []
        lines: list[int] = []
        records: list[bytes] = []
        invalid: InvalidRecordError | None = None
        for message, line in zip(portion.messages, portion.lines, strict=True):
            try:
                stored = message.stored
                assert stored is not None
                self._check_time(stored)
                if not (stored.stored_body or self._allow_empty):
                    raise ValueError(
                        f"{BODY_LENGTH_ZERO}: {stored.place}; --allow-empty stores it anyway"
                    )
                stored.topic = self._targets.target(message.topic)
                stored.queue_id = self._targets.queue(stored.topic, message.queue_id or 0)
                records.append(record_of(stored))
                ready.append(stored)
                lines.append(line)
                self._newest = stored.store_timestamp
            except (ValueError, InvalidMessageError) as error:
                invalid = InvalidRecordError(line, str(error))
                if not self._skip_invalid:
                    break
                self._invalid.append(invalid)
        if records:
            self._store(ready, records, lines[0])
        for problem in (invalid, portion.invalid):
            if problem is not None and not self._skip_invalid:
                raise problem
        if portion.invalid is not None:
            self._invalid.append(portion.invalid)

    def _check_time(self, message: MessageExt) -> None:
        time = message.store_timestamp
        if time < self._newest:
            raise ValueError(
                f"was stored at {self._shown(time)}, before the previous message; store times must "
                "not decrease"
            )
        if time > self._cli.now_ms + _AHEAD_MS:
            raise ValueError(
                f"was stored at {self._shown(time)}, which is in the future by this machine's clock"
            )

    def _shown(self, time: int) -> str:
        return format_time(time, self._cli.zone, iso=True)

    def _store(self, messages: list[MessageExt], records: list[bytes], line: int) -> None:
        """Store the messages, of which the first is in ``line``; only then make their topics, as
        the log may refuse them. Until then a topic is known by its queues on disk."""
        queues = list(dict.fromkeys((message.topic, message.queue_id) for message in messages))
        numbers = {queue: number for number, queue in enumerate(queues)}
        of_queue = np.array([numbers[m.topic, m.queue_id] for m in messages], np.int64)
        store = self._broker.store
        assert store is not None
        self.attempted += len(records)
        result = store.put(ExactEncoder(queues).columns(records, of_queue, None))
        if not result.status.stored:
            self.attempted = self.count
        if result.status is PutMessageStatus.MESSAGE_ILLEGAL:
            sentence = (
                f"line {line}: {result.reason}; import into a new store ('rmqctl store init'), or "
                "without --keep-times"
            )
            raise Refused(sentence)
        if not result.status.stored:
            raise CliError(result.reason, exit_codes.NOT_WRITABLE)
        self.count += len(records)
        is_flushed = result.status is PutMessageStatus.PUT_OK
        self.not_flushed += 0 if is_flushed else len(records)
        self._targets.make(topic for topic, _ in queues)
        if self._rows is not None:
            self._rows.write(
                SentRow(
                    "SEND_OK" if is_flushed else result.status.value,
                    message.topic,
                    message.queue_id,
                    int(offset),
                    message.msg_id,
                    offset_msg_id(message.store_host_bytes, int(place)),
                )
                for message, offset, place in zip(
                    messages, result.queue_offsets, result.commitlog_offsets, strict=True
                )
            )
            self._rows.flush()

    def _judge(self) -> None:
        code = exit_codes.PARTLY if self.count else exit_codes.USAGE
        if self._invalid and self._skip_invalid:
            left_out = f"left out {counted(len(self._invalid), 'message')} that cannot be stored"
            raise PartlyDone(f"{left_out}; {first_of(self._invalid, self._ended)}", code)
        if self._invalid:
            before = f"{counted(self.count, 'message')} before it stored, " if self.count else ""
            after = "nothing after it" if self.count else "nothing was stored"
            raise PartlyDone(f"{self._invalid[0]}; {before}{after}", code)
        self._cli.say(f"imported {counted(self.count, 'message')} with the original times")
        check_flushed(self.not_flushed)
