"""Following stores: each message once, in batches whose ends Spark remembers.

A stream's position is a commit log offset for each store, so it survives restarts, and records that
were appended in between are read then. Ends come from the queues: a message counts as present when
its unit is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from storage.readonly import StoreView

from .losses import DataLossError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from .options import Options


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads stores from position to position."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._last: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        """Where the stream begins: each store's own begin, its end, or the given offset."""
        starting = self._options.starting_offset
        if starting == "latest":
            return self._ends()
        if starting != "earliest":
            return dict.fromkeys(self._names(), int(starting))
        return self._begins()

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a batch takes: all, or ``maxBytesPerTrigger`` of each store."""
        most = self._options.max_bytes
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next batch."""
        ends = self._last if self._last is not None else self._ends()
        if isinstance(limit, ReadMaxBytes):
            begins = {**self._begins(), **start}
            ends = {name: min(end, begins[name] + limit.max_bytes) for name, end in ends.items()}
        return {**start, **ends}  # also of stores that are not named now: they may return

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the stream to the data of now."""
        self._last = self._ends()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Cut a batch into tasks. Raises DataLossError; see ``failOnDataLoss``."""
        from .ranges import Range, queue_ranges, tasks_of
        from .selection import Selection
        from .source import Part

        options = self._options
        ranges: list[Range] = []
        for ref in options.stores:
            # A store that is new to the stream has lost no data of the stream.
            first, limit = start.get(ref.broker, 0), end.get(ref.broker, 0)
            if first >= limit:
                continue
            if ref.broker in start:
                self._check_still_there(ref.broker, ref.path, first)
            chosen = Selection().bounded("commitlog_offset", first, limit)
            ranges += queue_ranges((ref,), options.topics, chosen)
        return [Part(task) for task in tasks_of(ranges, options.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's rows."""
        from .source import arrow_schema, range_batches

        if partition.value is None:
            return iter(())
        return range_batches(self._options, partition.value, arrow_schema(self._schema))

    def _check_still_there(self, broker: str, path: str, first: int) -> None:
        with StoreView.open(path) as view:
            begin = view.log_min_offset()
        if first < begin and self._options.fail_on_data_loss:
            raise DataLossError(
                f"{broker}: {begin - first} bytes of the log from {first} on were deleted before "
                "this stream read them; failOnDataLoss=false goes on after them"
            )

    def _names(self) -> list[str]:
        return [ref.broker for ref in self._options.stores]

    def _begins(self) -> dict[str, int]:
        begins = {}
        for ref in self._options.stores:
            with StoreView.open(ref.path) as view:
                begins[ref.broker] = view.log_min_offset()
        return begins

    def _ends(self) -> dict[str, int]:
        ends = {}
        for ref in self._options.stores:
            with StoreView.open(ref.path) as view:
                ends[ref.broker] = _end(view)
        return ends


def _end(view: StoreView) -> int:
    """The log offset after the last record with a unit: units are written in the order of the log,
    so those of all records before it exist."""
    end = view.log_min_offset()
    for topic, queue_id in view.queues():
        unit = view.unit(topic, queue_id, view.max_offset_in_queue(topic, queue_id) - 1)
        if unit is not None:
            end = max(end, unit[0] + unit[1])
    return end
