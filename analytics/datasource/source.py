"""``spark.read.format("rocketmq")``: the tables of stores.

    spark.read.format("rocketmq").option("table", "lag").load("/data/*/store")

Spark finds the source by itself when rmqctl is installed (the package ``pyspark_rocketmq``);
elsewhere ``spark.dataSource.register(RocketMQSource)`` registers it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from analytics.object_store.address import is_address

from .created import options_in, with_options
from .damage import NULL
from .errors import OptionError
from .named import check_named
from .options import (
    Options,
    check_effects,
    kept_logs,
    kept_stores,
    of_table,
    read_options,
)
from .selection import EVERYTHING, Selection, select
from .tables import COUNTED, OF_STORES, STREAMED, columns_of, ddl
from .versions import check_version

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        Filter,
    )

    from .store_shares import StoreShare

NAME: Final = "rocketmq"
_PUSHES: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class RocketMQSource(DataSource):
    """Stores as tables (``read``) and as streams (``readStream``). Options: ``options.Options``."""

    @classmethod
    def name(cls) -> str:
        """The source's short name."""
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_version(pyspark.__version__)

    def schema(self) -> StructType | str:
        """The columns of the table that the options name, or those of the option ``columns``."""
        kept = of_table(self.options)
        options = read_options(self.options)
        whole = columns_of(options.table, damage=True)
        columns = {name: whole[name] for name in options.columns}
        return ddl(columns) if kept is None else with_options(columns, kept)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read a table once; ``schema`` may be some of its columns, in any order."""
        options = self._checked(schema, stream=False)
        pushes = options.pushdown == "true" or (
            options.pushdown == "auto" and _spark_pushes(sys._getframe(1).f_globals)
        )
        if any(is_address(ref.path) for ref in options.stores):
            from .object_reader import ObjectReader, PushdownObjectReader

            return (PushdownObjectReader if pushes else ObjectReader)(options, schema)
        return (PushdownReader if pushes else TableReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Follow a table; ``schema`` may be some of its columns, in any order."""
        from .stream import LogStream

        return LogStream(self._checked(schema, stream=True), schema)

    def _checked(self, schema: StructType, *, stream: bool) -> Options:
        """The options, from the schema in a table that CREATE TABLE has made."""
        options = read_options(self.options or options_in(schema))
        if stream and options.table not in STREAMED:
            raise OptionError(f"{options.table} is no stream; these are: {', '.join(STREAMED)}")
        check_effects(options, stream=stream)
        _check(schema, options)
        if any(is_address(ref.path) for ref in options.stores):
            from .object_reader import check_objects

            check_objects(options, stream=stream)
        if "columns" in options.given and tuple(schema.names) != options.columns:
            raise OptionError("columns: a schema of other columns is given, too; give one of them")
        return options

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Store rows as messages once; see docs/spark.md. Raises when the query starts."""
        from analytics.sink.options import read_sink_options
        from analytics.sink.writer import BatchWriter

        return BatchWriter(
            read_sink_options(self.options, stream=False), schema, overwrite=overwrite
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Store the rows of a stream as messages, each once."""
        from analytics.sink.options import read_sink_options
        from analytics.sink.writer import StreamWriter

        return StreamWriter(
            read_sink_options(self.options, stream=True), schema, overwrite=overwrite
        )


def _check(schema: StructType, options: Options) -> None:
    table = options.table
    whole = columns_of(table, damage=options.on_damage == NULL)
    for field in schema:
        if field.name not in whole:
            raise OptionError(f"{table} has no column {field.name}; it has {', '.join(whole)}")
        if field.dataType.simpleString() != whole[field.name]:
            raise OptionError(f"{field.name} of {table} is {whole[field.name]}")


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
        from .log_now import LogLooks
        from .ranges import given_limits, queue_ranges, tasks_of
        from .store_shares import shares_of
        from .stretches import are_few, stretch_tasks, whole_logs

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
            limits = given_limits(options)
            found = queue_ranges(stores, options.topics, chosen, limits, records=records)
            return [Part(task) for task in tasks_of(list(found), size)]
        parts = whole_logs(logs, options, chosen)
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


def _spark_pushes(caller: Mapping[str, Any]) -> bool:
    """Whether the caller of ``reader`` is Spark's module that pushes filters.

    It asks for a reader of its own, where the setting is on. Elsewhere a reader that takes filters
    fails the query if the setting is off.
    """
    spec = caller.get("__spec__")
    return str(getattr(spec, "name", None) or caller.get("__name__")) == _PUSHES


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
    from .batches import BatchLimits, message_batches, unit_batches
    from .stretches import Work

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

    make: Callable[[StoreShare, Options, Selection], Iterator[dict[str, object]]] = {
        "offsets": progress_rows.offset_rows,
        "lag": progress_rows.lag_rows,
        "lag_partials": progress_rows.partial_rows,
    }[options.table]
    rows = list(make(share, options, chosen))
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)
