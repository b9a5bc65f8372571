"""Readers of tables whose stores lie in object stores or in HDFS: snapshots, which do not change.

The driver lists each store, and plans on a folder that is filled on demand. A task of messages or
units fetches their ranges; one of a group's progress makes such a folder by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from analytics.datasource.plan.batch_ranges import batch_ranges
from analytics.datasource.plan.kept_logs import kept_logs
from analytics.datasource.plan.ranges import tasks_of
from analytics.datasource.plan.store_shares import shares_of
from analytics.datasource.query.errors import OptionError
from analytics.datasource.query.named import check_named
from analytics.datasource.query.selection import EVERYTHING
from analytics.datasource.query.tables import COUNTED, STREAMED
from analytics.datasource.rows.bodies import COLUMNS as OF_BODY
from analytics.datasource.rows.readers import (
    Part,
    PushdownReader,
    TableReader,
    arrow_schema,
    range_batches,
)
from analytics.object_store.address import is_address
from analytics.object_store.steady import steadily

from .plan import FolderLooks, Folders, ObjectTask, of_addresses, whole_copy
from .windows import Needs, windowed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from analytics.datasource.plan.store_shares import StoreShare
    from analytics.datasource.query.options import Options
    from storage.readonly import StoreView

READ: Final = (*STREAMED, "offsets", "lag", "lag_partials")
"""The tables that are read from object stores."""


def check_objects(options: Options, *, stream: bool) -> None:
    """Raise OptionError for what is not read from an object store."""
    if stream:
        raise OptionError(
            "path: a store in an object store is a snapshot, which gets no messages; read it as a "
            "batch, or follow the store in its folder"
        )
    if options.table not in READ:
        raise OptionError(
            f"table: {options.table} is read from folders only; from object stores are read: "
            + ", ".join(READ)
        )


class ObjectReader(TableReader):
    """Reads a table of stores of which some lie in an object store."""

    def partitions(self) -> Sequence[InputPartition]:
        """Plan as for folders; the tasks have addresses again."""
        options = self._options
        with Folders(options.stores, skip=options.skip_unreadable) as folders:
            return folders.run(lambda: self._planned(folders))

    def _planned(self, folders: Folders) -> list[InputPartition]:
        options, chosen = self._options._replace(stores=folders.refs), self._chosen
        logs = kept_logs(options, FolderLooks())
        stores = [log.ref for log in logs]
        check_named(stores, options)
        if options.table not in STREAMED:
            wanted = [ref for ref in stores if chosen.wants("broker", ref.broker)]
            shares = shares_of(wanted, counts=options.table == COUNTED, looks=FolderLooks())
            return [Part(share._replace(ref=folders.address(share.ref))) for share in shares]
        found = batch_ranges(logs, options, chosen)
        views: dict[str, StoreView] = {}
        try:
            tasks = tasks_of(found, options.task_size)
            return [Part(list(folders.tasks(task, views))) for task in tasks]
        finally:
            for view in views.values():
                view.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's rows."""
        if partition.value is None:
            return iter(())
        if self._options.table in STREAMED:
            return self._read_ranges(partition.value)
        if is_address(partition.value.ref.path):
            return self._read_share(partition.value)
        return super().read(partition)

    def _read_share(self, share: StoreShare) -> Iterator[pa.RecordBatch]:
        with whole_copy(share.ref.path) as copy, of_addresses([copy]):
            here = Part(share._replace(ref=share.ref._replace(path=str(copy.root))))
            yield from steadily([copy], lambda: super(ObjectReader, self).read(here))
            copy.check_unchanged()

    def _read_ranges(self, tasks: Sequence[ObjectTask]) -> Iterator[pa.RecordBatch]:
        options, chosen = self._options, self._chosen
        schema = arrow_schema(self._schema)
        are_messages = options.table == "messages"
        has_times = chosen.store_timestamp != EVERYTHING.store_timestamp
        needs = Needs(
            are_messages,
            not OF_BODY.isdisjoint(schema.names),
            not are_messages and "store_timestamp" in schema.names,
            chosen.tags if are_messages else None,
            chosen.store_timestamp if are_messages and has_times else None,
        )
        for head, ranges in tasks:
            if head is None:
                yield from range_batches(options, ranges, schema, chosen)
            else:
                yield from windowed(
                    head, ranges, needs, lambda some: range_batches(options, some, schema, chosen)
                )


class PushdownObjectReader(ObjectReader, PushdownReader):
    """The same with filters."""
