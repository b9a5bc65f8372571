"""The rows of ``store du``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Rank


class DiskUseRow(NamedTuple):
    """Log usage of a topic, of a group's retries and dead letters, or of a day."""

    topic: Annotated[str | None, "the topic; null for the rest of the log, and by group or day"]
    group: Annotated[str | None, OmitNull("the group, with --by group"), Rank.KEY]
    from_timestamp: Annotated[int | None, OmitNull("start of the day, with --by day"), Rank.KEY]
    messages: Annotated[int | None, "stored messages", Rank.USUAL]
    bytes: Annotated[
        int | None,
        "bytes of their records in the log; 0 for a light queue, null if units are damaged",
        Rank.KEY,
    ]
    share: Annotated[float | None, "share of the log, 0 to 1", Rank.MAIN]
    oldest_timestamp: Annotated[int | None, "when the oldest one was stored"]
    newest_timestamp: Annotated[int | None, "when the newest one was stored", Rank.EXTRA]
    unread_by: Annotated[list[str], "groups with progress that have not read all of it", Rank.MAIN]
    freed_next: Annotated[int | None, "bytes of it that the next deletion frees", Rank.MAIN]
