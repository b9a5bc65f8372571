"""The rows of ``store snapshot``, ``store restore`` and ``store diff``."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull

if TYPE_CHECKING:
    from storage.tools.snapshot.manifest import Manifest


class SnapshotRow(NamedTuple):
    """A snapshot that was taken or verified."""

    path: Annotated[str, "where it is"]
    source: Annotated[str, "the store that it was taken from"]
    at_timestamp: Annotated[int, "when it was begun"]
    commitlog: Annotated[dict[str, int], "min_offset, and max_offset: the cut"]
    queues: Annotated[int, "queues that have or had messages"]
    messages: Annotated[int, "messages that can be read"]
    files: Annotated[int, "files with a check sum"]
    bytes: Annotated[int, "their lengths together, holes included"]
    shared_files: Annotated[
        int | None, OmitNull("files that share their blocks with the store's: clones and links")
    ]
    whole: Annotated[bool, "whether the log reads up to the cut; false: the store was damaged"]


class RestoreRow(NamedTuple):
    """A part of what a restore does."""

    part: Annotated[str, "of the snapshot: commitlog, consumequeue ...; or the old store"]
    action: Annotated[str, "write, or move aside"]
    path: Annotated[str, "where to"]
    files: Annotated[int | None, "files of it"]
    bytes: Annotated[int | None, "their lengths together, holes included"]
    applied: Annotated[bool | None, OmitNull("whether it was done")]


class StoreDiffRow(NamedTuple):
    """One difference of two stores."""

    part: Annotated[str, "log, config, topic, group, queue, message or offset"]
    name: Annotated[str, "the topic, the group, topic@group for an offset"]
    queue_id: Annotated[int | None, "the queue, if it is of one"]
    queue_offset: Annotated[int | None, "of the first message that differs"]
    field: Annotated[str, "what differs; exists: one of both does not have it"]
    a: Annotated[Any, "the first one's value, a message's id; null for none"]
    b: Annotated[Any, "the second one's"]
    note: Annotated[str | None, OmitNull("how many messages differ")]


def snapshot_row(path: str, manifest: "Manifest", shared: int | None) -> SnapshotRow:
    """The row of a snapshot; ``shared`` is None where nobody knows."""
    log: dict[str, Any] = {"min_offset": manifest.log_min, "max_offset": manifest.log_end}
    return SnapshotRow(
        path,
        manifest.source,
        manifest.at_timestamp,
        log,
        len(manifest.queues),
        manifest.messages,
        len(manifest.files),
        manifest.size_bytes,
        shared,
        manifest.whole,
    )
