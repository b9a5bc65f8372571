"""The rows of ``message stats``."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Wide


class MessageStats(NamedTuple):
    """What many messages are like together."""

    messages: Annotated[int, "how many"]
    bytes: Annotated[int, "of their records in the log"]
    body_bytes: Annotated[int, "of their bodies as stored, maybe compressed"]
    first_timestamp: Annotated[int | None, "when the first was stored"]
    last_timestamp: Annotated[int | None, "when the last was stored"]
    per_hour: Annotated[float | None, "messages an hour between these"]
    body_bytes_min: Annotated[int | None, "the smallest body as stored"]
    body_bytes_p50: Annotated[int | None, "half of the bodies are not larger (to 1/8)"]
    body_bytes_p99: Annotated[int | None, "99 of 100 bodies are not larger (to 1/8)"]
    body_bytes_max: Annotated[int | None, "the largest body as stored"]
    compressed: Annotated[int, "messages whose bodies are stored compressed"]
    with_keys: Annotated[int, "messages with keys"]
    retried: Annotated[int, "messages that were given back before"]
    topics: Annotated[list[dict[str, Any]], Wide("the most frequent: topic, messages, bytes")]
    tags: Annotated[list[dict[str, Any]], Wide("the most frequent: tag, messages, bytes")]
    keys: Annotated[list[dict[str, Any]], Wide("the most frequent: key, messages, bytes")]
    hosts: Annotated[list[dict[str, Any]], Wide("the most frequent: host, messages, bytes")]
    damaged: Annotated[int, "records that can not be read; not counted above"]


class StatsRow(NamedTuple):
    """The messages that have something in common."""

    value: Annotated[str | None, "the topic, tag, key, host or queue; null without one"]
    messages: Annotated[int, "how many"]
    share: Annotated[float, "of all that were counted, 0 to 1; keys may share messages"]
    bytes: Annotated[int, "of their records in the log"]
    body_bytes: Annotated[int, "of their bodies as stored"]
    first_timestamp: Annotated[int, "when the first was stored"]
    last_timestamp: Annotated[int, "when the last was stored"]


class TimeStatsRow(NamedTuple):
    """The messages of a minute, an hour or a day."""

    start_timestamp: Annotated[int, "when the span begins, in the zone of --tz"]
    messages: Annotated[int, "stored in it"]
    share: Annotated[float, "of all that were counted, 0 to 1"]
    bytes: Annotated[int, "of their records in the log"]
    body_bytes: Annotated[int, "of their bodies as stored"]
    per_second: Annotated[float, "messages a second, over the whole span"]
