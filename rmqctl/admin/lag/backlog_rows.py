"""The rows of ``lag histogram`` and ``lag risk``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Fit, Rank, Wide


class HistogramRow(NamedTuple):
    """A bucket of unread messages."""

    bucket: Annotated[str, "from (inclusive) and to (exclusive), or the tag, key or host"]
    messages: Annotated[int, "unread messages in it that are still stored", Rank.KEY]
    share: Annotated[float | None, "share of all unread messages, 0 to 1; keys may share messages"]
    bytes: Annotated[int | None, "bytes of their records in the log"]
    bar: Annotated[str, "the share as a bar", Rank.MAIN, Fit.END]
    low: Annotated[int | None, Wide("lower edge in ms or bytes; null: 0, or not a number")]
    high: Annotated[int | None, Wide("upper edge in ms or bytes; null: no limit")]


class RiskRow(NamedTuple):
    """Messages of a topic that a group lost or may lose."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    lost: Annotated[
        int | None, "messages deleted before the group read them; null: unknown", Rank.KEY
    ]
    at_risk: Annotated[
        int | None,
        "unread messages that may be deleted within the time; null: unknown",
        Rank.KEY,
    ]
    at_risk_bytes: Annotated[int | None, "bytes of their records in the log"]
    risk_timestamp: Annotated[int | None, "when the first of them may be deleted", Rank.MAIN]
    risk_in_ms: Annotated[int | None, "time until then; 0: now"]
    drain_ms: Annotated[int | None, "time until all is read at the present rates; null if unknown"]
    status: Annotated[str, "OK, UNKNOWN, WARN, REWIND, STALL or STOP"]
    lag: Annotated[int | None, Wide("unread messages, including deleted ones")]
    unknown_queues: Annotated[
        int, Wide("queues that are not in the sums, as their progress is unknown")
    ]
