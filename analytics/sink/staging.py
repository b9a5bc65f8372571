"""Messages that wait in Arrow files until all tasks of a write have succeeded."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from analytics.errors import SinkCommitError
from storage.files.creating import make_folders, replacing
from storage.format.message import Message
from storage.format.properties import encode_properties, parse_properties

from .rows import Outgoing

if TYPE_CHECKING:
    import pyarrow as pa

_TOGETHER: Final = 5_000
_BYTES_TOGETHER: Final = 16 << 20


class StagedPart(NamedTuple):
    """The staged messages of one task."""

    partition: int
    path: str
    rows: int


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            ("topic", pa.string()),
            ("queue_id", pa.int32()),
            ("body", pa.binary()),
            ("properties", pa.binary()),
        ]
    )


def stage(folder: Path, partition: int, messages: Iterable[Outgoing]) -> StagedPart | None:
    """Write the messages of a task into a file of its own, on the device when this returns; None
    for none."""
    import pyarrow as pa

    part: list[Outgoing] = []
    schema, rows, size = _schema(), 0, 0
    path = folder / f"part-{partition}-{uuid4()}.arrow"
    make_folders(folder)
    with suppress(_NothingStagedError), replacing(path) as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for message in messages:
                part.append(message)
                rows += 1
                size += message.size
                if len(part) == _TOGETHER or size > _BYTES_TOGETHER:
                    writer.write_batch(_batch(part, schema))
                    part, size = [], 0
            if part:
                writer.write_batch(_batch(part, schema))
        if not rows:
            raise _NothingStagedError
    return StagedPart(partition, str(path), rows) if rows else None


class _NothingStagedError(Exception):
    """The task had no rows: its file is not kept."""


def _batch(part: list[Outgoing], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [
        [one.message.topic for one in part],
        [one.queue_id for one in part],
        [one.message.body for one in part],
        [encode_properties(one.message.properties) for one in part],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def staged_messages(part: StagedPart) -> Iterator[Outgoing]:
    """The messages of a task, in the order of its rows. Raises SinkCommitError."""
    import pyarrow as pa

    try:
        with pa.OSFile(part.path) as file, pa.ipc.open_stream(file) as reader:
            for batch in reader:
                topics, queues, bodies, properties = (
                    column.to_pylist() for column in batch.columns
                )
                for topic, queue_id, body, text in zip(
                    topics, queues, bodies, properties, strict=True
                ):
                    message = Message(topic, body)
                    message.properties = parse_properties(text)
                    yield Outgoing(message, queue_id, len(body) + len(text))
    except (OSError, pa.ArrowInvalid) as error:
        raise SinkCommitError(
            f"the staged rows of partition {part.partition} cannot be read ({error}); "
            "the rest of this write cannot be stored"
        ) from error


def remove_staged(folder: Path) -> None:
    """Remove a write's folder, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_parts(parts: Iterable[StagedPart]) -> None:
    """Remove staged files, and their folders once they are empty."""
    for part in parts:
        path = Path(part.path)
        with suppress(OSError):
            path.unlink()
            path.parent.rmdir()
