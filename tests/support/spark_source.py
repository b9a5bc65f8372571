"""The readers of the data source, without a Spark: what its workers call, in their order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceReader, Filter
from pyspark.sql.types import StructType

from analytics.datasource.query import tables
from analytics.datasource.query.created import columns
from analytics.datasource.source import RocketMQSource

Row = dict[str, Any]


def columns_of(table: str, *names: str) -> StructType:
    """The schema of a table, or of some of its columns."""
    whole = tables.columns_of(table, damage=True)
    return columns({name: whole[name] for name in names or tables.TABLES[table]})


def source(*paths: Path | str, **options: str) -> RocketMQSource:
    """The source of ``spark.read.format("rocketmq").options(...).load(paths)``."""
    return RocketMQSource({"path": ",".join(map(str, paths)), **options})


def read_table(
    table: str,
    *paths: Path | str,
    columns: Sequence[str] = (),
    filters: Sequence[Filter] = (),
    **options: str,
) -> list[Row]:
    """All rows of a table, in the order of tasks."""
    reader = source(*paths, table=table, **options).reader(columns_of(table, *columns))
    if filters:
        list(reader.pushFilters(list(filters)))
    return rows_of(reader)


def rows_of(reader: DataSourceReader) -> list[Row]:
    """The rows that the tasks of a reader give."""
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()  # type: ignore[union-attr]
    ]


class Stream:
    """A streaming query without Spark: triggers, and a checkpoint that is JSON text."""

    def __init__(
        self, *paths: Path | str, table: str = "messages", at: str | None = None, **options: str
    ) -> None:
        self.reader = source(*paths, table=table, **options).streamReader(columns_of(table))
        self.at = json.dumps(self.reader.initialOffset()) if at is None else at
        """The checkpoint."""

    def trigger(self) -> list[Row]:
        """One batch: its rows. The checkpoint moves to its end."""
        reader = self.reader
        start = json.loads(self.at)
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        found = [
            row
            for part in (reader.partitions(start, end) if end != start else ())
            for batch in reader.read(part)
            for row in batch.to_pylist()  # type: ignore[union-attr]
        ]
        self.at = json.dumps(end)
        return found

    def commit(self) -> None:
        """What Spark calls when the next batch is planned: the last one is done."""
        self.reader.commit(json.loads(self.at))

    def drain(self, most: int = 1000) -> list[list[Row]]:
        """The batches until there is no more."""
        batches: list[list[Row]] = []
        for _ in range(most):
            before = self.at
            found = self.trigger()
            if self.at == before:
                return batches
            batches.append(found)
        raise AssertionError(f"after {most} batches it still goes on")
