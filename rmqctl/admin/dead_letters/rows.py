"""The rows of the ``dlq`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Rank, Wide


class DlqRow(NamedTuple):
    """The dead letters of one group."""

    group: Annotated[str, "the consumer group"]
    depth: Annotated[int, "dead letters that are still in the store", Rank.KEY]
    unhandled: Annotated[int, "those that were neither redriven nor acknowledged", Rank.KEY]
    oldest_timestamp: Annotated[int | None, "when the oldest one became a dead letter", Rank.MAIN]
    newest_timestamp: Annotated[int | None, "when the newest one became a dead letter"]
    bytes: Annotated[int, "bytes of their records in the log"]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return ("oldest_timestamp", "newest_timestamp") if self.depth else ()


class DeadLetterRow(NamedTuple):
    """One dead letter."""

    queue_offset: Annotated[int, "its offset in the dead letter queue"]
    msg_id: Annotated[str, "the unique id, else the offset id"]
    keys: Annotated[list[str], "the keys"]
    origin_topic: Annotated[str | None, "the original topic"]
    reconsume_times: Annotated[int, "how often it was sent back"]
    dead_timestamp: Annotated[int, "when it was stored as a dead letter", Rank.USUAL]
    age_ms: Annotated[int, "time since then", Rank.MAIN]
    reason: Annotated[
        str | None, "reason of the last failure; null if it was not recorded", Rank.KEY
    ]
    handled: Annotated[bool, "whether it was redriven or acknowledged", Rank.MAIN]
    store_size: Annotated[int, Wide("bytes of the record")]
    tags: Annotated[str | None, Wide("the tag")]
    origin_msg_id: Annotated[str | None, Wide("id of the original message")]
    redrives: Annotated[int, Wide("how often it was redriven before it failed this time")]
    preview: Annotated[str | None, Wide("the first characters of the body; null if not UTF-8")]


class DeadLetter(NamedTuple):
    """One dead letter in full."""

    group: Annotated[str, "the consumer group that gave it up"]
    queue_id: Annotated[int, "its dead letter queue"]
    queue_offset: Annotated[int, "its queue offset"]
    msg_id: Annotated[str, "the unique id, else the offset id"]
    offset_msg_id: Annotated[str, "store host and log position"]
    keys: Annotated[list[str], "the keys"]
    tags: Annotated[str | None, "the tag"]
    reconsume_times: Annotated[int, "how often it was sent back"]
    dead_timestamp: Annotated[int, "when it was stored as a dead letter"]
    age_ms: Annotated[int, "time since then"]
    handled: Annotated[bool, "whether it was redriven or acknowledged"]
    redrives: Annotated[int, "how often it was redriven before it failed this time"]
    origin: Annotated[dict[str, Any], "topic, queue, offset and id of the original message"]
    reason: Annotated[
        dict[str, Any] | None, "reason of the last failure; null if it was not recorded"
    ]
    born_timestamp: Annotated[int, "when the producer created it"]
    born_host: Annotated[str, "the producer's address"]
    store_size: Annotated[int, "bytes of the record"]
    body_size: Annotated[int | None, "bytes of the body after decompression"]
    body: Annotated[str | None, "the body after decompression; null if it is not UTF-8"]
    body_base64: Annotated[str | None, OmitNull("the body, only if it is not UTF-8")]
    properties: Annotated[dict[str, str], "every property as stored"]
    life: Annotated[list[dict[str, Any]] | None, OmitNull("its history, oldest first")]


class DeadLetterGroupRow(NamedTuple):
    """Dead letters with a common property."""

    value: Annotated[str | None, "the common value; null if unknown"]
    count: Annotated[int, "how many there are", Rank.KEY]  # type: ignore[assignment]
    share: Annotated[float, "share of all that were read, from 0 to 1", Rank.MAIN]
    first_timestamp: Annotated[int, "when the first one became a dead letter"]
    last_timestamp: Annotated[int, "when the last one became a dead letter", Rank.MAIN]
    topics: Annotated[list[str], "their original topics"]
    example: Annotated[str, "id of the newest one"]


class RedriveRow(NamedTuple):
    """One dead letter of a redrive plan."""

    queue_offset: Annotated[int, "its offset in the dead letter queue"]
    msg_id: Annotated[str, "its unique id, else the offset id", Rank.MAIN]
    origin_topic: Annotated[str | None, "the original topic", Rank.USUAL]
    target: Annotated[str | None, "the topic that it is sent to", Rank.KEY]
    redrives: Annotated[int, "how often it was redriven already"]
    body_size: Annotated[int | None, "bytes of the body to send; null before --pipe ran"]
    note: Annotated[str | None, "changes and earlier runs, or the reason why it is skipped"]


class RedriveReceipt(NamedTuple):
    """The receipt of one dead letter of a redrive."""

    queue_offset: Annotated[int, "its offset in the dead letter queue"]
    msg_id: Annotated[str, "its unique id, else the offset id", Rank.MAIN]
    target: Annotated[str | None, "the topic that it was sent to", Rank.KEY]
    new_msg_id: Annotated[str | None, "its id there"]
    new_queue_id: Annotated[int | None, "its queue there"]
    new_queue_offset: Annotated[int | None, "its queue offset there"]
    redriven_timestamp: Annotated[int | None, "when it was stored there", Rank.EXTRA]
    note: Annotated[
        str | None, "the plan's note, why it was skipped, or that an earlier attempt sent it"
    ]
    run: Annotated[str, "the run, for --resume", Rank.EXTRA]
    applied: Annotated[bool, "whether it was sent", Rank.KEY]


class AckRow(NamedTuple):
    """One dead letter whose mark changes."""

    queue_offset: Annotated[int, "its offset in the dead letter queue"]
    msg_id: Annotated[
        str | None, "its unique id, else the offset id; null if the message is gone", Rank.MAIN
    ]
    dead_timestamp: Annotated[int | None, "when it became a dead letter", Rank.USUAL]
    reason: Annotated[str | None, "reason of the last failure; null if it was not recorded"]
    handled: Annotated[bool, "the new mark", Rank.KEY]
    applied: Annotated[bool | None, OmitNull("whether the mark was written; null in a plan")]
