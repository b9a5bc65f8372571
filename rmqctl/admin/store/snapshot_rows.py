"""The rows of ``store snapshot`` and ``store diff``."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rmqctl.output.fields import Fit, OmitNull, Rank

if TYPE_CHECKING:
    from storage.tools.snapshot.manifest import Manifest


class SnapshotRow(NamedTuple):
    """A snapshot that was taken or verified."""

    path: Annotated[str, "its path"]
    source: Annotated[str, "the store that it was taken from"]
    at_timestamp: Annotated[int, "when it was started"]
    commitlog: Annotated[dict[str, int], "min_offset, and max_offset: the end of the copy"]
    queues: Annotated[int, "queues that have or had messages"]
    messages: Annotated[int, "readable messages"]
    files: Annotated[int, "files with a checksum"]
    bytes: Annotated[int, "their total length, including holes"]
    shared_files: Annotated[
        int | None, OmitNull("files that share their blocks with the store: clones and links")
    ]
    whole: Annotated[
        bool, "whether the log is readable up to its end; false: the store was damaged"
    ]


class StoreDiffRow(NamedTuple):
    """One difference between two stores."""

    part: Annotated[str, "log, config, topic, group, queue, message or offset"]
    name: Annotated[str, "the topic, the group, topic@group for an offset", Rank.KEY]
    queue_id: Annotated[int | None, "the queue, if it concerns one"]
    queue_offset: Annotated[int | None, "offset of the first message that differs"]
    field: Annotated[str, "the differing field; exists: only one of the stores has it", Rank.KEY]
    a: Annotated[Any, "value in A, or a message id; null for none", Rank.KEY, Fit.END]
    b: Annotated[Any, "value in B", Rank.KEY, Fit.END]
    note: Annotated[str | None, OmitNull("number of differing messages")]


def snapshot_row(path: str, manifest: "Manifest", shared: int | None) -> SnapshotRow:
    """The row of a snapshot; ``shared`` is None if unknown."""
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
