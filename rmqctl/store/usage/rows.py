"""The rows of ``store du`` and ``store clean``."""

from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull


class DiskUseRow(NamedTuple):
    """Log usage of a topic, of a group's retries and dead letters, or of a day."""

    topic: Annotated[str | None, "the topic; null for the rest of the log, and by group or day"]
    group: Annotated[str | None, OmitNull("the group, with --by group")]
    from_timestamp: Annotated[int | None, OmitNull("start of the day, with --by day")]
    messages: Annotated[int | None, "stored messages"]
    bytes: Annotated[
        int | None,
        "bytes of their records in the log; 0 for a light queue, null if units are damaged",
    ]
    share: Annotated[float | None, "share of the log, 0 to 1"]
    oldest_timestamp: Annotated[int | None, "when the oldest one was stored"]
    newest_timestamp: Annotated[int | None, "when the newest one was stored"]
    unread_by: Annotated[list[str], "groups with progress that have not read all of it"]
    freed_next: Annotated[int | None, "bytes of it that the next deletion frees"]


class FileKind(StrEnum):
    """Kind of a file."""

    LOG = "log"
    QUEUE = "queue"
    INDEX = "index"


class CleanedFile(NamedTuple):
    """An expired file."""

    file: Annotated[str, "the file, relative to the store"]
    kind: Annotated[FileKind, "log, queue or index"]
    bytes: Annotated[int | None, "disk usage; null for queue and index files"]
    modified_timestamp: Annotated[
        int | None, "when it was last written; its age counts from this time"
    ]
    messages: Annotated[int | None, "messages that are deleted with it; for log files only"]
    unread_by: Annotated[list[str], "groups with progress that have not read all of them"]


_new_row_type: Any = NamedTuple

CleanedFileDone: Any = _new_row_type(
    "CleanedFileDone",
    [*CleanedFile.__annotations__.items(), ("applied", Annotated[bool, "whether it was deleted"])],
)
"""A file of the plan, or one that belonged to it, and whether it was deleted."""
