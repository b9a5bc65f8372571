"""The rows of the ``dlq`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Wide


class DlqRow(NamedTuple):
    """The dead letters of one group."""

    group: Annotated[str, "the consumer group"]
    depth: Annotated[int, "dead letters that are still in the store"]
    unhandled: Annotated[int, "those that nobody has redriven or acknowledged"]
    oldest_timestamp: Annotated[int | None, "when the oldest of them died"]
    newest_timestamp: Annotated[int | None, "when the newest of them died"]
    bytes: Annotated[int, "what their records take of the log"]


class DeadLetterRow(NamedTuple):
    """One dead letter."""

    queue_offset: Annotated[int, "its place among the group's dead letters"]
    msg_id: Annotated[str, "the unique id, else the offset id"]
    keys: Annotated[list[str], "the keys by which it can be found"]
    origin_topic: Annotated[str | None, "the topic that it was first read from"]
    reconsume_times: Annotated[int, "how often it was given back"]
    dead_timestamp: Annotated[int, "when it was stored as a dead letter"]
    age_ms: Annotated[int, "time since then"]
    reason: Annotated[str | None, "why it failed last; null where nobody kept it"]
    handled: Annotated[bool, "whether it was redriven or acknowledged"]
    store_size: Annotated[int, Wide("the record's bytes")]
    tags: Annotated[str | None, Wide("the tag")]
    origin_msg_id: Annotated[str | None, Wide("id of the message that was read first")]
    redrives: Annotated[int, Wide("how often it had been redriven before it died this time")]
    preview: Annotated[str | None, Wide("the first characters of the body; null if not UTF-8")]


class DeadLetter(NamedTuple):
    """One dead letter in full."""

    group: Annotated[str, "the consumer group that gave it up"]
    queue_id: Annotated[int, "its queue of the group's dead letters"]
    queue_offset: Annotated[int, "its place there"]
    msg_id: Annotated[str, "the unique id, else the offset id"]
    offset_msg_id: Annotated[str, "store host and log position"]
    keys: Annotated[list[str], "the keys by which it can be found"]
    tags: Annotated[str | None, "the tag"]
    reconsume_times: Annotated[int, "how often it was given back"]
    dead_timestamp: Annotated[int, "when it was stored as a dead letter"]
    age_ms: Annotated[int, "time since then"]
    handled: Annotated[bool, "whether it was redriven or acknowledged"]
    redrives: Annotated[int, "how often it had been redriven before it died this time"]
    origin: Annotated[dict[str, Any], "topic, queue, offset and id of what was read first"]
    reason: Annotated[dict[str, Any] | None, "why it failed last; null where nobody kept it"]
    born_timestamp: Annotated[int, "when the producer made it"]
    born_host: Annotated[str, "the producer's address"]
    store_size: Annotated[int, "the record's bytes"]
    body_size: Annotated[int | None, "bytes of the body after decompression"]
    body: Annotated[str | None, "the body after decompression; null if it is not UTF-8"]
    body_base64: Annotated[str | None, OmitNull("the body, only if it is not UTF-8")]
    properties: Annotated[dict[str, str], "every property as stored"]
    life: Annotated[list[dict[str, Any]] | None, OmitNull("what is known of it, oldest first")]


class DeadLetterGroupRow(NamedTuple):
    """Dead letters that have something in common."""

    value: Annotated[str | None, "what they have in common; null where it is unknown"]
    count: Annotated[int, "how many there are"]  # type: ignore[assignment]
    share: Annotated[float, "of all that were looked at, from 0 to 1"]
    first_timestamp: Annotated[int, "when the first of them died"]
    last_timestamp: Annotated[int, "when the last of them died"]
    topics: Annotated[list[str], "where they were read from"]
    example: Annotated[str, "id of the newest"]


class RedriveRow(NamedTuple):
    """One dead letter that is to be sent again, or was: its receipt."""

    queue_offset: Annotated[int, "its place among the group's dead letters"]
    msg_id: Annotated[str, "its unique id, else the offset id"]
    origin_topic: Annotated[str | None, "the topic that it was first read from"]
    target: Annotated[str | None, "the topic that it is sent to"]
    redrives: Annotated[int, "how often it was redriven before"]
    body_size: Annotated[int | None, "bytes of the body that is sent; null before a --pipe ran"]
    note: Annotated[str | None, "what is changed or was done before, or why it is left alone"]


class RedriveReceipt(NamedTuple):
    """What became of one dead letter that was to be sent again."""

    queue_offset: Annotated[int, "its place among the group's dead letters"]
    msg_id: Annotated[str, "its unique id, else the offset id"]
    target: Annotated[str | None, "the topic that it was sent to"]
    new_msg_id: Annotated[str | None, "the id that it has there"]
    new_queue_id: Annotated[int | None, "the queue"]
    new_queue_offset: Annotated[int | None, "its place in the queue"]
    redriven_timestamp: Annotated[int | None, "when it was stored there"]
    note: Annotated[str | None, "why it was left alone, or found done by an earlier attempt"]
    run: Annotated[str, "the run, for --resume"]
    applied: Annotated[bool, "whether it was sent"]


class AckRow(NamedTuple):
    """One dead letter whose mark changes."""

    queue_offset: Annotated[int, "its place among the group's dead letters"]
    msg_id: Annotated[str | None, "its unique id, else the offset id; null if it is gone"]
    dead_timestamp: Annotated[int | None, "when it died"]
    reason: Annotated[str | None, "why it failed last; null where nobody kept it"]
    handled: Annotated[bool, "the mark that it gets"]
    applied: Annotated[bool | None, OmitNull("whether it was written; null in a plan")]
