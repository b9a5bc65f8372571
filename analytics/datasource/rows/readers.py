"""What Spark's tasks read of the tables of stores: the work of a query, cut into tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from analytics.datasource.plan.kept_logs import kept_logs, kept_stores
from analytics.datasource.query.named import check_named
from analytics.datasource.query.selection import EVERYTHING, Selection, select
from analytics.datasource.query.tables import COUNTED, OF_STORES, STREAMED

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from analytics.datasource.plan.store_shares import StoreShare
    from analytics.datasource.query.options import Options


class Part(InputPartition):
    """What one task reads: ranges of queues, or a whole store."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)


class TableReader(DataSourceReader):
    """Reads a table in tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._chosen = EVERYTHING

    def partitions(self) -> Sequence[InputPartition]:
        """Cut the work; queues are read up to their ends of now. Later messages are not."""
        from analytics.datasource.plan.batch_ranges import batch_ranges, warn_of_no_rows
        from analytics.datasource.plan.log_now import LogLooks
        from analytics.datasource.plan.ranges import tasks_of
        from analytics.datasource.plan.store_shares import shares_of
        from analytics.datasource.plan.stretches import are_few, stretch_tasks, whole_logs

        options, chosen = self._options, self._chosen
        if options.table not in STREAMED:
            stores = kept_stores(options)
            check_named(stores, options)
            wanted = [ref for ref in stores if chosen.wants("broker", ref.broker)]
            if options.table in OF_STORES:
                return [Part(ref) for ref in wanted]
            return [Part(share) for share in shares_of(wanted, counts=options.table == COUNTED)]
        logs = kept_logs(options, LogLooks())
        stores = [log.ref for log in logs]
        check_named(stores, options)
        size, records = options.task_size, options.table == "messages"
        if are_few(logs, options.topics, chosen):
            return [Part(task) for task in tasks_of(batch_ranges(logs, options, chosen), size)]
        parts = list(whole_logs(logs, options, chosen))
        if not parts and chosen == EVERYTHING:
            warn_of_no_rows(logs, options)
        is_part = options.topics.selects_some or chosen.selects_some
        return [Part(task) for task in stretch_tasks(parts, size, records=records, is_part=is_part)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's rows."""
        if partition.value is None:  # Spark's value for no partition
            return iter(())
        schema = arrow_schema(self._schema)
        if self._options.table in STREAMED:
            return range_batches(self._options, partition.value, schema, self._chosen)
        if self._options.table in OF_STORES:
            from .store_tables import store_batches

            return store_batches(self._options, self._chosen, partition.value, schema)
        return _row_batches(self._options, self._chosen, partition.value, schema)


class PushdownReader(TableReader):
    """Reads only what filters on positions and times leave.

    A class of its own: Spark refuses readers with filter pushdown where that is switched off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Take the filters that limit the range; give back the others."""
        self._chosen, left = select(filters)
        if self._options.table in OF_STORES:  # names may be null there, and rows are few
            left = filters
        if self._chosen != EVERYTHING:
            _tell(f"{self._options.table}: the reader applies {self._chosen.sentence()}")
        return iter(left)


def _tell(text: str) -> None:
    """Log a line, on stderr too if nothing else takes the log: Spark's plan does not show it."""
    pushed = logging.getLogger("rmqctl.datasource.pushdown")
    pushed.setLevel(logging.INFO)
    if not pushed.hasHandlers():
        pushed.addHandler(logging.StreamHandler())
    pushed.info("rmqctl: %s", text)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow form for Spark: times in microseconds, UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def range_batches(
    options: Options, task: Any, schema: pa.Schema, chosen: Selection = EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """Rows of ranges of queues and stretches of logs, for a table that has them; of messages only
    those of the ``chosen`` times and tags. A row of ``consumequeue`` costs no more than its
    time."""
    from analytics.datasource.plan.stretches import Work

    from .batches import BatchLimits, message_batches, unit_batches

    ranges = [Work(item, options, chosen) for item in task]
    lost = options.fail_on_data_loss
    limits = BatchLimits(options.batch_rows, options.batch_bytes)
    if options.table != "messages":
        return unit_batches(ranges, schema, limits, fail_on_loss=lost)
    times = None
    if chosen.store_timestamp != EVERYTHING.store_timestamp:
        times = chosen.store_timestamp
    return message_batches(
        ranges,
        schema,
        limits,
        times,
        tags=chosen.tags,
        fail_fast=options.fail_fast,
        fail_on_loss=lost,
        on_damage=options.on_damage,
    )


def _row_batches(
    options: Options, chosen: Selection, share: StoreShare, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from . import progress_rows
    from .arrays import value_array

    make: Callable[[StoreShare, Options, Selection], Iterator[dict[str, object]]] = {
        "offsets": progress_rows.offset_rows,
        "lag": progress_rows.lag_rows,
        "lag_partials": progress_rows.partial_rows,
    }[options.table]
    rows = list(make(share, options, chosen))
    columns = [value_array([row[field.name] for row in rows], field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)
