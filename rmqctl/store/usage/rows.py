"""The rows of ``store du`` and ``store clean``."""

from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull


class DiskUseRow(NamedTuple):
    """What a topic, a group's retries and dead letters, or a day takes of the log."""

    topic: Annotated[str | None, "the topic; null for the rest of the log, and by group or day"]
    group: Annotated[str | None, OmitNull("the group, with --by group")]
    from_timestamp: Annotated[int | None, OmitNull("when the day begins, with --by day")]
    messages: Annotated[int | None, "messages that are stored"]
    bytes: Annotated[
        int | None, "their records in the log; 0 for a light queue, null if units are damaged"
    ]
    share: Annotated[float | None, "part of the log, 0 to 1"]
    oldest_timestamp: Annotated[int | None, "when the oldest one was stored"]
    newest_timestamp: Annotated[int | None, "when the newest one was stored"]
    unread_by: Annotated[list[str], "groups with progress that have not read all of it"]
    freed_next: Annotated[int | None, "bytes of it that go with the next files of the log"]


class FileKind(StrEnum):
    """Which of the store's files."""

    LOG = "log"
    QUEUE = "queue"
    INDEX = "index"


class CleanedFile(NamedTuple):
    """A file whose time is over."""

    file: Annotated[str, "the file, in the store"]
    kind: Annotated[FileKind, "log, queue or index"]
    bytes: Annotated[int | None, "what it takes on the disk; null for what follows the log"]
    modified_timestamp: Annotated[int | None, "when it was written last: its age counts from there"]
    messages: Annotated[int | None, "messages of queues that go with it; null but for the log"]
    unread_by: Annotated[list[str], "groups with progress that have not read all of them"]


_new_row_type: Any = NamedTuple

CleanedFileDone: Any = _new_row_type(
    "CleanedFileDone",
    [*CleanedFile.__annotations__.items(), ("applied", Annotated[bool, "whether it is gone"])],
)
"""A file of the plan, or one that followed it, and whether it is gone."""
