"""The writers that Spark calls: tasks stage their rows, the driver stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from analytics.errors import SinkOptionError
from storage.coordination.lock_owners import is_java_running
from storage.detect import check_is_store
from storage.errors import StoreInUseError
from storage.files.access import refuse_unwritable

from .leftovers import remove_left
from .marker import UNNAMED, has_begun, sink_folder
from .options import SinkOptions
from .rows import RowReader, check_columns
from .staging import STAGING_PREFIX, Mark, StagedPart, put_mark, remove_staged, stage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass
class Staged(WriterCommitMessage):
    """What a task has done: its staged rows (None: none, or stored by the task itself)."""

    part: StagedPart | None
    write: str


def check_writable(options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
    """Refuse what cannot succeed when the query starts, before a row is read.

    Raises SinkOptionError, SinkSchemaError, and StoreError for a store that is missing, cannot be
    written, or is a running Java broker's.
    """
    if overwrite:
        raise SinkOptionError(
            'a store\'s log is only ever appended to; use mode("append"), or outputMode("append")'
        )
    check_columns(schema, options)
    check_is_store(options.path)
    if is_java_running(options.path):
        raise StoreInUseError(options.path, "a Java broker")
    refuse_unwritable(options.path)


def _task(
    options: SinkOptions, staging: Path, write: str, iterator: Iterator[pa.RecordBatch]
) -> Staged:
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    reader = RowReader(options, partition)
    rows = (message for batch in iterator for message in reader.messages(batch))
    if options.exactly_once:
        return Staged(stage(staging, partition, rows), write)
    from broker.embedded.broker import EmbeddedBroker

    from .commit import append

    with EmbeddedBroker.open(options.path) as broker:
        append(broker, rows)
        broker.flush()
    return Staged(None, write)


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[StagedPart]:
    return [one.part for one in messages if isinstance(one, Staged) and one.part is not None]


class BatchWriter(DataSourceArrowWriter):
    """``df.write``: nothing is stored unless all tasks succeed."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        check_writable(options, schema, overwrite=overwrite)
        self._options = options
        self._write = options.write_id or f"{UNNAMED}{uuid4()}"
        self._mark = Mark.of(options.path, self._write)  # tasks need not see the store
        self._base = options.staging or sink_folder(options.path)
        self._staging = self._base / f"{STAGING_PREFIX}{self._write}-{uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task."""
        if self._options.exactly_once:
            put_mark(self._staging, self._mark)
        return _task(self._options, self._staging, self._write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Store the staged rows."""
        if not self._options.exactly_once:
            return
        from .commit import commit

        once = self._options.write_id is None
        parts = _parts(messages)
        commit(self._options.path, self._write, 0, parts, once=once, staging=self._base)
        remove_staged(self._staging)
        remove_left(self._options.path, self._base)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Forget the staged rows, unless their commit has begun: it can go on (``writeId``)."""
        if not has_begun(self._options.path, self._write):
            remove_staged(self._staging)


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream``: each batch once, over restarts too."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        check_writable(options, schema, overwrite=overwrite)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task of a batch."""
        from pyspark import TaskContext

        context = TaskContext.get()
        local = (lambda name: None) if context is None else context.getLocalProperty
        write = local("sql.streaming.queryId") or ""
        batch = local("streaming.sql.batchId") or "0"
        folder = (self._options.staging or Path()) / write / batch
        return _task(self._options, folder, write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Store the staged rows of a batch."""
        if not self._options.exactly_once:
            return
        from .commit import commit

        writes = {one.write for one in messages if isinstance(one, Staged)}
        for write in writes:
            folder = (self._options.staging or Path()) / write
            commit(self._options.path, write, batchId, _parts(messages), staging=folder)
            self._remove_to(write, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Keep what is staged: a batch may have begun before. It goes when the batch is stored."""

    def _remove_to(self, write: str, batch: int) -> None:
        """Remove the staged files of this batch and of those before."""
        folder = (self._options.staging or Path()) / write
        if not write:  # the folder is not the stream's own
            return
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name.isdigit() and int(path.name) <= batch:
                remove_staged(path)
