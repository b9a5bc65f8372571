"""Messages that wait in Arrow files until all tasks of a write have succeeded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from uuid import uuid4

from analytics.errors import SinkCommitError
from storage.files.creating import make_folders, replacing
from storage.format.message import Message
from storage.format.properties import encode_properties, parse_properties

from .rows import Outgoing

if TYPE_CHECKING:
    import pyarrow as pa

STAGING_PREFIX: Final = "rmqctl-sink-"
"""How the folders of batches begin, which may lie in a folder of others."""
_MARK: Final = "rmqctl-sink.json"
_MARK_VERSION: Final = 1
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OURS: Final = (
    rf"part-\d+-{_UUID}\.arrow|\.(?:part-\d+-{_UUID}\.arrow|{re.escape(_MARK)})\.\w+\.tmp"
)
"""The files of a sink, also those that are not finished."""
_NOTHING: Final = (
    "nothing was stored; 'stagingLocation' is to be a folder that the driver and all workers share"
)
_NOT_THE_REST: Final = (
    "the rest of this write cannot be stored until it is there again, at this path or in "
    "'stagingLocation'"
)
_TOGETHER: Final = 5_000
_BYTES_TOGETHER: Final = 16 << 20


class StagedPart(NamedTuple):
    """The staged messages of one task."""

    partition: int
    path: str
    rows: int


class Mark(NamedTuple):
    """What a batch notes in its folder: for which store it stages rows, and its name."""

    store: str
    inode: int
    """Of the store: machines that share the folder may have other stores at the same path."""
    write: str

    @classmethod
    def of(cls, store: Path, write: str) -> Self:
        """The mark of a write to a store. Raises OSError."""
        return cls(str(store), store.stat().st_ino, write)


def put_mark(folder: Path, mark: Mark) -> None:
    """Make a batch's folder, and note in it whose it is. Raises OSError."""
    path = folder / _MARK
    if path.exists():  # by another task
        return
    make_folders(folder)
    with replacing(path) as file:
        file.write(json.dumps({"version": _MARK_VERSION, **mark._asdict()}).encode() + b"\n")


def read_mark(folder: Path) -> Mark | None:
    """Whose a batch's folder is; None if that is not noted, or not known."""
    try:
        found = json.loads((folder / _MARK).read_bytes())
        if found.pop("version") != _MARK_VERSION:
            return None
        return Mark(**found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


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
    for batch in _batches(part, _NOT_THE_REST):
        topics, queues, bodies, properties = (column.to_pylist() for column in batch.columns)
        for topic, queue_id, body, text in zip(topics, queues, bodies, properties, strict=True):
            message = Message(topic, body)
            message.properties = parse_properties(text)
            yield Outgoing(message, queue_id, len(body) + len(text))


def check_staged(parts: Iterable[StagedPart], *, is_begun: bool) -> None:
    """Raise SinkCommitError for a part that cannot be read, or has not the rows of its task.

    ``is_begun``: some of the rows may be stored.
    """
    what = _NOT_THE_REST if is_begun else _NOTHING
    for part in parts:
        rows = sum(batch.num_rows for batch in _batches(part, what))
        if rows != part.rows:
            raise SinkCommitError(
                f"the staged rows of partition {part.partition} are {rows} in {part.path}, and its "
                f"task has staged {part.rows}; {what}"
            )


def at_hand(part: StagedPart, base: Path) -> StagedPart:
    """The part where it is now: at its path, or in its folder below another one."""
    path = Path(part.path)
    moved = base / path.parent.name / path.name
    return part._replace(path=str(moved)) if moved.exists() and not path.exists() else part


def _batches(part: StagedPart, what: str) -> Iterator[pa.RecordBatch]:
    """The batches of a part. Raises SinkCommitError, which says ``what`` follows."""
    import pyarrow as pa

    try:
        with pa.OSFile(part.path) as file, pa.ipc.open_stream(file) as reader:
            yield from reader
    except (OSError, pa.ArrowInvalid) as error:
        raise SinkCommitError(
            f"the staged rows of partition {part.partition} cannot be read ({error}); {what}"
        ) from error


def remove_staged(folder: Path) -> None:
    """Remove the staged files of a write, and its folder if nothing else is in it."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if re.fullmatch(_OURS, path.name):
                path.unlink()
        _remove_bare(folder)


def remove_parts(parts: Iterable[StagedPart]) -> None:
    """Remove staged files, and their folders once they are empty."""
    for part in parts:
        path = Path(part.path)
        with suppress(OSError):
            path.unlink()
            _remove_bare(path.parent)


def _remove_bare(folder: Path) -> None:
    """Remove a folder in which only the mark is left. Raises OSError."""
    if all(path.name == _MARK for path in folder.iterdir()):
        (folder / _MARK).unlink(missing_ok=True)
        folder.rmdir()
