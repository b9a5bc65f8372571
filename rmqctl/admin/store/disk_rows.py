"""The rows of ``store du``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Fit, OmitNull, Rank

from .disk_files import DiskKind


class DiskUseRow(NamedTuple):
    """What a topic, a group's retries and dead letters, a day, or the rest of the store takes."""

    kind: Annotated[
        DiskKind | None,
        OmitNull("topic, or what else the bytes are; null by group or day"),
        Rank.KEY,
    ]
    topic: Annotated[str | None, "the topic; null for the rest of the store, and by group or day"]
    group: Annotated[str | None, OmitNull("the group, with --by group"), Rank.KEY]
    from_timestamp: Annotated[int | None, OmitNull("start of the day, with --by day"), Rank.KEY]
    messages: Annotated[int | None, "stored messages", Rank.USUAL]
    bytes: Annotated[
        int | None,
        "bytes of their records in the log; 0 for a light queue, null if units are damaged",
        Rank.KEY,
    ]
    disk_bytes: Annotated[
        int | None,
        OmitNull("bytes on the disk, with queue files; all rows are what du counts; null by day"),
        Rank.KEY,
    ]
    share: Annotated[float | None, "share of the log, 0 to 1", Rank.USUAL]
    oldest_timestamp: Annotated[int | None, "when the oldest one was stored"]
    newest_timestamp: Annotated[int | None, "when the newest one was stored", Rank.EXTRA]
    unread_by: Annotated[list[str], "groups with progress that have not read all of it", Rank.MAIN]
    unknown_for: Annotated[list[str], OmitNull("groups of which that is unknown"), Rank.MAIN]
    freed_next: Annotated[int | None, "bytes of it that the next deletion frees", Rank.MAIN]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return ("oldest_timestamp", "newest_timestamp") if self.messages else ()


class DiskKindRow(NamedTuple):
    """What one kind of the bytes of a store takes on the disk."""

    kind: Annotated[DiskKind, "what they are", Rank.KEY]
    disk_bytes: Annotated[
        int, "bytes on the disk; all rows are what du counts; holes are negative", Rank.KEY
    ]
    share: Annotated[float | None, "share of the sum, 0 to 1", Rank.MAIN]
    files: Annotated[int | None, "number of files; null for a part of files", Rank.USUAL]
    what: Annotated[str, "where they come from", Fit.WRAP, Rank.EXTRA]
