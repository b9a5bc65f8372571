"""A data source of ready rows: it reads one batch of a table and sends it again and again.

Beside the data source ``rocketmq`` it shows what Spark itself needs for the rows: to take them from
the worker and to make rows of all their columns, whatever the query asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from analytics.datasource.query.tables import columns_of, ddl
from analytics.datasource.source import RocketMQSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME = "ready"
_TASKS = 8


class ReadyRows(DataSource):
    """Options: ``path``, ``table`` and ``rows``, the number of rows."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return ddl(columns_of(self.options["table"]))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(dict(self.options), schema)


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._rows = int(options.pop("rows"))
        self._source = RocketMQSource(options).reader(schema)
        self._first = self._source.partitions()[0]

    def partitions(self) -> list[InputPartition]:
        ends = [self._rows * part // _TASKS for part in range(_TASKS + 1)]
        return [InputPartition(end - start) for start, end in pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        batches: Iterator[Any] = iter(self._source.read(self._first))
        batch, left = next(batches), partition.value
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows
