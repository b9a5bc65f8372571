"""The rows of the ``retry`` commands."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Fit, Null, OmitNull, Rank, Wide


class RetryRow(NamedTuple):
    """One message that a group will consume again."""

    msg_id: Annotated[str, "the unique id, else the offset id", Rank.KEY]
    keys: Annotated[list[str], "the keys"]
    origin_topic: Annotated[str | None, "the original topic"]
    origin_queue_id: Annotated[int | None, "its original queue; null if that record is gone"]
    origin_offset: Annotated[int | None, "its original queue offset; null if that record is gone"]
    reconsume_times: Annotated[int, "how often it was sent back"]
    failed_timestamp: Annotated[int | None, "when it was last sent back"]
    due_timestamp: Annotated[
        int | None, "when it is, or was, due; null if that is unknown", Rank.KEY, Null.UNKNOWN
    ]
    reason: Annotated[
        str | None, "reason of the last failure; null if it was not recorded", Rank.KEY
    ]
    store_size: Annotated[int, Wide("bytes of the record")]
    tags: Annotated[str | None, Wide("the tag")]
    delay_level: Annotated[int | None, Wide("its delay level")]
    client: Annotated[str | None, Wide("the client that sent it back")]
    state: Annotated[
        str | None,
        Wide(
            "WAITING, OVERDUE, READY (in the retry topic) or CONSUMED (read past there); null: "
            "unknown"
        ),
        Null.UNKNOWN,
    ]
    offset_msg_id: Annotated[str, Wide("store host and log position")]


class AttemptRow(NamedTuple):
    """One event of a message."""

    at_timestamp: Annotated[int, "when", Rank.KEY]
    what: Annotated[
        str,
        "STORED, FAILED (sent back, waits), DELIVERED (ready for a retry), DEAD, REDRIVEN",
        Rank.KEY,
        Fit.WHOLE,
    ]
    reconsume_times: Annotated[int | None, "how often it was sent back until then"]
    topic: Annotated[str, "the topic of the record", Rank.MAIN]
    queue_id: Annotated[int | None, "the queue of the record", Rank.USUAL]
    queue_offset: Annotated[int | None, "the queue offset of the record"]
    due_timestamp: Annotated[int | None, "of FAILED: when the retry is due"]
    reason: Annotated[str | None, "failure reason; null if it was not recorded", Rank.KEY]
    delay_level: Annotated[int | None, Wide("of FAILED: the delay")]
    client: Annotated[str | None, Wide("of FAILED and DEAD: the client that sent it back")]
    msg_id: Annotated[str | None, Wide("its id; a redriven message may have a new one")]


class AgendaRow(NamedTuple):
    """Waiting messages of one delay level with one target topic."""

    level: Annotated[int, "the delay level"]
    topic: Annotated[str | None, "the target topic"]
    group: Annotated[str | None, "the group of the retries; null for delayed messages"]
    messages: Annotated[int | None, "number of waiting messages; null if that is unknown (AHEAD)"]
    next_timestamp: Annotated[int | None, "when the first of them is due"]
    last_timestamp: Annotated[int | None, "when the last of them is due"]
    overdue: Annotated[int | None, "number of messages past their due time; null as messages"]
    state: Annotated[
        str,
        "of the level: OK; OVERDUE: no process delivers; STUCK: a process should deliver, but "
        "does not; AHEAD: the saved offset is past the end of the queue",
    ]
    delay_ms: Annotated[int | None, Wide("delay of the level; null if the level does not exist")]
    saved_offset: Annotated[int | None, Wide("progress of the level in delayOffset.json")]
    min_offset: Annotated[int, Wide("first offset of the level's queue")]
    max_offset: Annotated[int, Wide("end of the level's queue")]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        if self.messages is not None:
            return ()
        return ("messages", "next_timestamp", "last_timestamp", "overdue")


class DelayedRow(NamedTuple):
    """One message that waits for delivery."""

    due_timestamp: Annotated[int, "when it is due"]
    msg_id: Annotated[str, "the unique id, else the offset id", Rank.MAIN]
    keys: Annotated[list[str], "the keys"]
    topic: Annotated[str, "the target topic"]
    queue_id: Annotated[int, "the target queue"]
    level: Annotated[int, "the delay level"]
    reconsume_times: Annotated[int, "how often it was sent back; 0 for a delayed message"]
    store_timestamp: Annotated[int, "when it was stored"]
    tags: Annotated[str | None, Wide("the tag")]
    store_size: Annotated[int, Wide("bytes of the record")]
    queue_offset: Annotated[int, Wide("its offset in the queue of the level")]
    commitlog_offset: Annotated[int, Wide("position of its first byte in the commit log")]
    offset_msg_id: Annotated[str, Wide("store host and log position")]


class SentNowRow(NamedTuple):
    """One waiting message that is sent before it is due."""

    msg_id: Annotated[str, "the unique id, else the offset id"]
    reconsume_times: Annotated[int, "how often it was sent back"]
    due_timestamp: Annotated[int | None, "when it would be due", Rank.USUAL]
    target: Annotated[str, "the target topic", Rank.MAIN]
    reason: Annotated[
        str | None, "reason of the last failure; null if it was not recorded", Rank.USUAL
    ]
    note: Annotated[str | None, "why it is skipped", Rank.MAIN]
    queue_offset: Annotated[int | None, OmitNull("its queue offset there; null in a plan")]
    applied: Annotated[bool | None, OmitNull("whether it was sent; null in a plan")]
