"""The rows of ``lag histogram`` and ``lag risk``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Wide


class HistogramRow(NamedTuple):
    """A bucket of unread messages."""

    bucket: Annotated[str, "from (inclusive) and to (exclusive), or the tag, key or host"]
    messages: Annotated[int, "unread messages in it that are still there"]
    share: Annotated[float | None, "of all of them, 0 to 1"]
    bytes: Annotated[int | None, "what they take in the log"]
    bar: Annotated[str, "the share, drawn"]
    low: Annotated[int | None, Wide("where it begins, ms or bytes; null: at 0, or not a number")]
    high: Annotated[int | None, Wide("where the next begins, ms or bytes; null: has no end")]


class RiskRow(NamedTuple):
    """What a group is about to lose of a topic, or has lost."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    lost: Annotated[int | None, "messages that were deleted before it read them"]
    at_risk: Annotated[int | None, "unread messages that may be deleted within the time"]
    at_risk_bytes: Annotated[int | None, "what they take in the log"]
    risk_timestamp: Annotated[int | None, "from when on the first of them may be deleted"]
    risk_in_ms: Annotated[int | None, "how long that is from now; 0: any moment"]
    drain_ms: Annotated[int | None, "until all is read at the present rates; null if not known"]
    status: Annotated[str, "OK, UNKNOWN, WARN, REWIND, STALL or STOP"]
    lag: Annotated[int | None, Wide("messages that it has not read, deleted ones included")]
    unknown_queues: Annotated[int, Wide("queues that are not in the sums: nothing is known")]
