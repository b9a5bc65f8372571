"""``spark.read.format("rocketmq")``: the tables of stores.

    spark.read.format("rocketmq").option("table", "lag").load("/data/*/store")

Spark finds the source by itself when rmqctl is installed (the package ``pyspark_rocketmq``);
elsewhere ``spark.dataSource.register(RocketMQSource)`` registers it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from analytics.datasource.query.created import options_in, with_options
from analytics.datasource.query.errors import OptionError
from analytics.datasource.query.options import Options, check_effects, of_table, read_options
from analytics.datasource.query.tables import NULL, STREAMED, columns_of, ddl
from analytics.datasource.rows.readers import PushdownReader, TableReader
from analytics.object_store.address import is_address

from .versions import check_version

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )


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
            from analytics.datasource.objects.reader import ObjectReader, PushdownObjectReader

            return (PushdownObjectReader if pushes else ObjectReader)(options, schema)
        return (PushdownReader if pushes else TableReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Follow a table; ``schema`` may be some of its columns, in any order."""
        from analytics.datasource.stream.log_stream import LogStream

        return LogStream(self._checked(schema, stream=True), schema)

    def _checked(self, schema: StructType, *, stream: bool) -> Options:
        """The options, from the schema in a table that CREATE TABLE has made."""
        options = read_options(self.options or options_in(schema))
        if stream and options.table not in STREAMED:
            raise OptionError(f"{options.table} is no stream; these are: {', '.join(STREAMED)}")
        check_effects(options, stream=stream)
        _check(schema, options)
        if any(is_address(ref.path) for ref in options.stores):
            from analytics.datasource.objects.reader import check_objects

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


def _spark_pushes(caller: Mapping[str, Any]) -> bool:
    """Whether the caller of ``reader`` is Spark's module that pushes filters.

    It asks for a reader of its own, where the setting is on. Elsewhere a reader that takes filters
    fails the query if the setting is off.
    """
    spec = caller.get("__spec__")
    return str(getattr(spec, "name", None) or caller.get("__name__")) == _PUSHES
