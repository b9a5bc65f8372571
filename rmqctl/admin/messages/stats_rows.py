"""The rows of ``message stats``."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Wide


class MessageStats(NamedTuple):
    """Counts and sizes of messages."""

    messages: Annotated[int, "how many"]
    bytes: Annotated[int, "bytes of their records in the log"]
    body_bytes: Annotated[int, "bytes of their bodies as stored, possibly compressed"]
    first_timestamp: Annotated[int | None, "when the first one was stored"]
    last_timestamp: Annotated[int | None, "when the last one was stored"]
    per_hour: Annotated[float | None, "messages per hour between these times"]
    body_bytes_min: Annotated[int | None, "the smallest body as stored"]
    body_bytes_p50: Annotated[int | None, "median size of bodies (precision 1/8)"]
    body_bytes_p99: Annotated[int | None, "99th percentile of body sizes (precision 1/8)"]
    body_bytes_max: Annotated[int | None, "the largest body as stored"]
    compressed: Annotated[int, "messages whose bodies are stored compressed"]
    with_keys: Annotated[int, "messages with keys"]
    retried: Annotated[int, "messages that were sent back before"]
    topics: Annotated[list[dict[str, Any]], Wide("the most frequent: topic, messages, bytes")]
    tags: Annotated[list[dict[str, Any]], Wide("the most frequent: tag, messages, bytes")]
    keys: Annotated[list[dict[str, Any]], Wide("the most frequent: key, messages, bytes")]
    hosts: Annotated[list[dict[str, Any]], Wide("the most frequent: host, messages, bytes")]
    damaged: Annotated[int, "unreadable records, not counted above"]


class StatsRow(NamedTuple):
    """Messages with a common value."""

    value: Annotated[str | None, "the topic, tag, key, host, queue or field; null for none"]
    messages: Annotated[int, "how many"]
    share: Annotated[float, "share of all counted messages, 0 to 1; keys may share messages"]
    bytes: Annotated[int, "bytes of their records in the log"]
    body_bytes: Annotated[int, "bytes of their bodies as stored"]
    first_timestamp: Annotated[int, "when the first one was stored"]
    last_timestamp: Annotated[int, "when the last one was stored"]


class TimeStatsRow(NamedTuple):
    """Messages of a minute, an hour or a day."""

    start_timestamp: Annotated[
        int | None, "start of the span, in the zone of --tz; null for the rest of too many spans"
    ]
    messages: Annotated[int, "messages stored in the span"]
    share: Annotated[float, "share of all counted messages, 0 to 1"]
    bytes: Annotated[int, "bytes of their records in the log"]
    body_bytes: Annotated[int, "bytes of their bodies as stored"]
    per_second: Annotated[float | None, "messages per second, over the whole span"]


class TimeValueStatsRow(NamedTuple):
    """Messages of a time span with a common value."""

    start_timestamp: Annotated[
        int | None, "start of the span, in the zone of --tz; null for the rest of too many values"
    ]
    value: Annotated[str | None, "the value of the other property; null for none"]
    messages: Annotated[int, "messages of the value that were stored in the span"]
    share: Annotated[float, "share of all counted messages, 0 to 1"]
    bytes: Annotated[int, "bytes of their records in the log"]
    body_bytes: Annotated[int, "bytes of their bodies as stored"]
