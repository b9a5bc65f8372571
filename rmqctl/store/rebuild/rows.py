"""The rows of ``store rebuild``."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Wide

if TYPE_CHECKING:
    from storage.tools.rebuild.index import RebuiltIndexFile
    from storage.tools.rebuild.queue import RebuiltQueue


class RebuildRow(NamedTuple):
    """A queue or an index file that is not what the log says."""

    part: Annotated[str, "queue or index"]
    topic: Annotated[str | None, "the topic; null for the index"]
    queue_id: Annotated[int | None, "the queue; null for the index"]
    files: Annotated[list[str], "its files that are replaced, made or taken away"]
    units_before: Annotated[int | None, "units (keys of an index file) it has; null: no such file"]
    units_after: Annotated[int | None, "units it is to have; null: the file goes"]
    changed: Annotated[int | None, "units that are missing or wrong now; null for the index"]
    log_from: Annotated[int | None, "log position of the first record that they are made from"]
    log_to: Annotated[int | None, "log position of the last one; of a queue, where it ends"]
    next_before: Annotated[int | None, Wide("where the queue ends now: its next queue offset")]
    next_after: Annotated[int | None, Wide("where it is to end")]
    fillers: Annotated[int | None, Wide("units in the place of messages that the log has lost")]
    applied: Annotated[bool | None, OmitNull("whether it was done; null in a plan")] = None


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
