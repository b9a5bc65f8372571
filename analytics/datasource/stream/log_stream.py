"""Following stores: each message once, in batches whose ends Spark remembers.

A stream's position is a commit log offset for each store (``positions``), so it survives restarts,
and records that were appended in between are read then. Ends come from the logs (``log_now``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from analytics.datasource.plan.kept_logs import kept_logs
from analytics.datasource.plan.log_now import LogLooks, LogNow
from analytics.datasource.query.bounds import BEGIN, EARLIEST, LATEST, QueueBound
from analytics.datasource.query.errors import DataLossError, OptionError
from analytics.datasource.query.named import check_named
from storage.read.log_offsets import first_at, place_from
from storage.readonly import StoreView

from .admission import Rest, are_fewer, ends_by_bytes, ends_by_messages, unread
from .batch_parts import BatchPart, tasks_of_batch
from .positions import Found, Position, find_positions, marks_before

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from analytics.datasource.query.options import Options

    from .commits import ProgressWriter

logger = logging.getLogger("rmqctl.datasource")


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads stores from position to position."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._looks = LogLooks()
        self._last: Sequence[LogNow] | None = None
        self._seen: list[_Place] = []
        self._given: dict[str, Any] = {}
        self._triggered: float | None = None
        self._is_checked = False
        self._progress: ProgressWriter | None = None
        if options.commit_group is not None:
            from .commits import ProgressWriter

            self._progress = ProgressWriter(options, options.commit_group)
            self._progress.begin([log.ref for log in self._look()])

    def initialOffset(self) -> dict[str, Any]:
        """Where the stream begins: each store's own begin, its end, or the given offset."""
        logs = self._look()
        refs = [log.ref for log in logs]
        check_named(refs, self._options, may_come=True)
        self._is_checked = True
        begins = {
            found.key: self._begin_of(log)
            for log, found in zip(logs, self._find({}, logs), strict=True)
        }
        if self._progress is not None:
            self._progress.begin_new(refs, begins)
        return {key: begin.stored() for key, begin in begins.items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a batch takes: all, or what the options of triggers say."""
        limits = self._options.limits
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        if limits.max_messages is not None:
            return ReadMaxRows(limits.max_messages)
        if limits.min_messages is not None:
            return ReadMinRows(limits.min_messages)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch. Raises DataLossError; see ``failOnDataLoss``."""
        last = self._last
        logs = self._look() if last is None else [log.begun_now() for log in last]
        self._check_restart(logs)
        places = [
            self._place(log, found)
            for log, found in zip(logs, self._find(start, logs), strict=True)
        ]
        self._seen = places
        if self._progress is not None:
            self._progress.write(
                (place.key, place.log.ref, place.before) for place in places if not place.is_new
            )
        if not isinstance(limit, ReadAllAvailable) and self._waits(places):
            return start
        ends = self._limited(places, limit)
        result = dict(start)  # also of stores that are not named now: they may return
        for place, end in zip(places, ends, strict=True):
            before, first = place.before, place.first
            if place.is_new or end != before.offset or first != before.offset:
                is_known = first == before.offset and (not place.is_new or first == place.log.begin)
                since = None if is_known else first
                marks = marks_before(place.log, end)
                moved = before.moved(end, marks, since)
                result[place.key] = moved.seen_in(place.log.ref, place.key).stored()
        self._triggered = time.monotonic()
        self._given = result
        return result

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What the stores held at the last trigger, and what of it the stream has not yet given:
        messages of the selected queues, bytes of the log, and the age of the oldest message."""
        report: dict[str, Any] = {}
        rests = []
        for place in self._seen:
            at = Position.of(self._given.get(place.key, place.before.stored()))
            rests.append(Rest(place.log, at, max(at.offset, place.log.begin)))
        for place, rest, found in zip(
            self._seen, rests, unread(rests, self._options.topics), strict=True
        ):
            oldest = found.oldest_timestamp
            age = None if oldest is None else max(0, time.time_ns() // 1_000_000 - oldest)
            report[place.key] = {
                "offset": place.log.end,
                **({} if found.messages is None else {"unreadMessages": found.messages}),
                "unreadBytes": rest.size,
                **({} if age is None else {"unreadAgeMs": age}),
            }
        return report or None

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the stream to the data of now."""
        self._last = self._look()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Cut a batch into tasks. Raises DataLossError; see ``failOnDataLoss``."""
        from analytics.datasource.rows.readers import Part

        options = self._options
        changed = {key: value for key, value in end.items() if value != start.get(key)}
        seen = [place.log for place in self._seen] or self._look()
        logs = [log.begun_now() for log in seen]
        self._check_restart(logs)
        named: set[str] = set()
        parts: list[BatchPart] = []
        for known, log, found in zip(seen, logs, self._find(end, logs), strict=True):
            if found.key not in changed or found.position is None:
                continue
            named.add(found.key)
            to = found.position
            # A store that is new to the stream has lost no data of it before it was seen.
            before = Position.of(start.get(found.key, known.begin))
            first = self._still_there(log, before.offset if to.since is None else to.since)
            if first < to.offset:
                parts.append(BatchPart(log, before, first, to.offset))
        self._check_named(start, {key: changed[key] for key in changed.keys() - named})
        tasks = tasks_of_batch(parts, options)
        # Files that were deleted meanwhile; those that are deleted later are noticed by the tasks.
        for log, _, first, _ in parts:
            self._still_there(log.begun_now(), first)
        return [Part(task) for task in tasks]

    def commit(self, end: dict[str, Any]) -> None:
        """Note that a batch is done: its end becomes the progress of ``commitGroup``, unless it
        is that already."""
        progress = self._progress
        if progress is None or progress.has_written(end):
            return
        logs = self._look()
        progress.write(
            (found.key, log.ref, found.position)
            for log, found in zip(logs, self._find(end, logs), strict=True)
            if found.position is not None and not found.is_new
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's rows."""
        from analytics.datasource.rows.readers import arrow_schema, range_batches

        if partition.value is None:
            return iter(())
        return range_batches(self._options, partition.value, arrow_schema(self._schema))

    def _look(self) -> Sequence[LogNow]:
        return kept_logs(self._options, self._looks)

    def _check_restart(self, logs: Sequence[LogNow]) -> None:
        """Check topics and queues of a stream that goes on, once: its position passes over what is
        not selected. Where the stream began, in the options, does not count any more. A store that
        is left out may have them."""
        options = self._options
        if self._is_checked or (options.skip_unreadable and len(logs) < len(options.stores)):
            return
        self._is_checked = True
        try:
            going_on = options._replace(starting=BEGIN)
            check_named([log.ref for log in logs], going_on, may_come=True)
        except OptionError as error:
            if options.fail_on_data_loss:
                remedy = "failOnDataLoss=false goes on without it"
                raise OptionError(f"{error}; {remedy}") from None
            logger.warning("%s", error)

    def _find(self, stored: Mapping[str, Any], logs: Sequence[LogNow]) -> Sequence[Found]:
        return find_positions(stored, logs, copies_once=self._options.copies_once)

    def _begin_of(self, log: LogNow) -> Position:
        starting = self._options.starting
        at = starting.log_offset
        if at is not None and at > log.end:
            raise OptionError(
                f"startingOffset: {at} lies past the end of the log of {log.ref.broker}, "
                f"which is {log.end}; 'latest' begins there"
            )
        if starting.word is not None:
            at = {EARLIEST: log.begin, LATEST: log.end}[starting.word]
        if at is not None:
            return Position(at, marks_before(log, at))
        return self._begin_in_queues(log)

    def _begin_in_queues(self, log: LogNow) -> Position:
        """The first message of all queues, and where those begin that begin later, or at units
        that cannot be read."""
        options = self._options
        begins: list[tuple[str, int, int, int, bool]] = []
        with StoreView.open(log.ref.path) as view:
            bound = QueueBound(options.starting, view, log.ref, fail=options.fail_on_data_loss)
            for topic, queue_id in view.queues():
                if options.topics.wants(log.ref.broker, topic, queue_id):
                    low, high = view.queue_bounds(topic, queue_id)
                    first = bound.offset(topic, queue_id, low, high, low)
                    readable, place = place_from(view, topic, queue_id, first, high)
                    at = log.end if place is None else place
                    begins.append((topic, queue_id, first, at, readable != first))
            at = min((place for *_, place, _ in begins), default=log.end)
            floors: dict[str, dict[str, int]] = {}
            for topic, queue_id, first, _, is_damaged in begins:
                low, high = view.queue_bounds(topic, queue_id)
                # Records name no damaged units: with a floor the batch looks at the queue.
                if is_damaged or first_at(view, topic, queue_id, at, low, high) < first:
                    floors.setdefault(topic, {})[str(queue_id)] = first
        return Position(at, marks_before(log, at), None, floors, log.end)

    def _place(self, log: LogNow, found: Found) -> _Place:
        before = found.position
        if before is None:
            return _Place(found.key, log, Position(log.begin), log.begin, is_new=True)
        first = self._go_on_at(log, found, before)
        return _Place(found.key, log, before, first, is_new=found.is_new)

    def _waits(self, places: Sequence[_Place]) -> bool:
        """Whether a batch waits for more messages; the first one does not."""
        limits = self._options.limits
        if limits.min_messages is None or self._triggered is None or self._last is not None:
            return False
        if time.monotonic() - self._triggered >= limits.max_delay_s:
            return False
        return are_fewer(_rests(places), self._options.topics, limits.min_messages)

    def _limited(self, places: Sequence[_Place], limit: ReadLimit) -> list[int]:
        if isinstance(limit, ReadMaxBytes):
            return ends_by_bytes(_rests(places), limit.max_bytes)
        if isinstance(limit, ReadMaxRows):
            return ends_by_messages(_rests(places), self._options.topics, limit.max_rows)
        return [max(place.first, place.log.end) for place in places]

    def _go_on_at(self, log: LogNow, found: Found, before: Position) -> int:
        """Where to read on: after the last batch, unless something is gone since then."""
        at, broker, path = before.offset, log.ref.broker, log.ref.path
        how = found.agreement
        if how.other and not how.same:
            self._lost(
                f"{broker}: the log in {path} is not the one that this stream has read up to byte "
                f"{at}: its first record is another one. What that log held after byte {at} is "
                "gone",
                "reads this log from its first message",
            )
            return log.begin
        if log.end < at:
            self._lost(
                f"{broker}: this stream has read the log up to byte {at}, and the log in {path} "
                f"ends at byte {log.end}: it was made anew, restored from an older copy, or "
                f"cut after a crash. {at - log.end} bytes of it are gone",
                "goes on at its end of now",
            )
            return log.end
        if how.other or how.gone:
            self._lost(
                f"{broker}: the last record that this stream has read is not in the log in {path} "
                f"any more: the log was cut before it, and others were stored there. Those before "
                f"byte {at} are not read",
                f"goes on at byte {at}",
            )
        return self._still_there(log, at)

    def _still_there(self, log: LogNow, first: int) -> int:
        if first < log.begin:
            self._lost(
                f"{log.ref.broker}: {log.begin - first} bytes of the log from {first} on were "
                "deleted before this stream read them",
                "goes on after them",
            )
        return max(first, log.begin)

    def _check_named(self, start: Mapping[str, Any], missing: Mapping[str, Any]) -> None:
        """Fail if a batch that is repeated after a restart has stores that are not named now."""
        for key, value in missing.items():
            known = Position.of(start[key]).offset if key in start else 0
            gone = Position.of(value).offset - known
            self._lost(
                f"{key}: {gone} bytes of its log are in a batch that is repeated, and no store "
                "that is named has that log; name it until the batch is done",
                "leaves them out",
            )

    def _lost(self, what: str, remedy: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{what}; failOnDataLoss=false {remedy}")
        logger.warning("%s", what)


class _Place(NamedTuple):
    """Where a stream is in a store."""

    key: str
    log: LogNow
    before: Position
    first: int
    """Where it goes on: the end of the batch before, unless something is gone."""
    is_new: bool


def _rests(places: Sequence[_Place]) -> list[Rest]:
    return [Rest(place.log, place.before, place.first) for place in places]
