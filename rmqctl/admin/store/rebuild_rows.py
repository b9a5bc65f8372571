"""The rows of ``store rebuild``."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Rank, Wide

if TYPE_CHECKING:
    from storage.tools.rebuild.index import RebuiltIndexFile
    from storage.tools.rebuild.queue import RebuiltQueue


class RebuildRow(NamedTuple):
    """A queue or an index file that differs from the log."""

    part: Annotated[str, "queue or index"]
    topic: Annotated[str | None, "the topic; null for the index"]
    queue_id: Annotated[int | None, "the queue; null for the index"]
    files: Annotated[list[str], "its files that are replaced, created or removed", Rank.EXTRA]
    units_before: Annotated[int | None, "present units (keys of an index file); null: no file"]
    units_after: Annotated[int | None, "units after the rebuild; null: the file is removed"]
    changed: Annotated[int | None, "units that are missing or wrong; null for the index", Rank.KEY]
    log_from: Annotated[int | None, "log position of the first record"]
    log_to: Annotated[int | None, "log position of the last record; for a queue its end"]
    next_before: Annotated[int | None, Wide("next offset of the queue before")]
    next_after: Annotated[int | None, Wide("next offset of the queue after")]
    fillers: Annotated[int | None, Wide("units for messages that are missing in the log")]
    applied: Annotated[
        bool | None, OmitNull("whether it was rebuilt; null in a plan"), Rank.KEY
    ] = None


def queue_row(queue: "RebuiltQueue") -> RebuildRow:
    """The row of a queue."""
    return RebuildRow(
        "queue",
        queue.topic,
        queue.queue_id,
        sorted((*queue.replaced, *queue.made, *queue.taken_away)),
        queue.units_before,
        queue.units_after,
        queue.changed,
        queue.log_from,
        queue.log_to,
        queue.next_before,
        queue.next_after,
        queue.fillers,
    )


def index_row(file: "RebuiltIndexFile") -> RebuildRow:
    """The row of an index file."""
    return RebuildRow(
        "index",
        None,
        None,
        [file.name],
        file.keys_before,
        file.keys_after,
        None,
        file.log_from,
        file.log_to,
        None,
        None,
        None,
    )
