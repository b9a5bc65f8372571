"""The rows of the ``retry`` commands."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Wide


class RetryRow(NamedTuple):
    """One message that a group is to consume again."""

    msg_id: Annotated[str, "the unique id, else the offset id"]
    keys: Annotated[list[str], "the keys by which it can be found"]
    origin_topic: Annotated[str | None, "the topic that it was first read from"]
    origin_queue_id: Annotated[int | None, "its queue there; null if that record is gone"]
    origin_offset: Annotated[int | None, "its place there; null if that record is gone"]
    reconsume_times: Annotated[int, "how often it was given back"]
    failed_timestamp: Annotated[int | None, "when it was given back last"]
    due_timestamp: Annotated[int | None, "when it is, or was, to be consumed again"]
    reason: Annotated[str | None, "why it failed last; null where nobody kept it"]
    store_size: Annotated[int, Wide("the record's bytes")]
    tags: Annotated[str | None, Wide("the tag")]
    delay_level: Annotated[int | None, Wide("the delay that it waits, or waited")]
    client: Annotated[str | None, Wide("the client that gave it back")]
    state: Annotated[
        str,
        Wide(
            "WAITING for its time, OVERDUE, READY in the retry topic, or CONSUMED: read past there"
        ),
    ]


class AttemptRow(NamedTuple):
    """One thing that happened to a message."""

    at_timestamp: Annotated[int, "when"]
    what: Annotated[
        str,
        "STORED, FAILED (given back, waits), DELIVERED (to be consumed again), DEAD, REDRIVEN",
    ]
    reconsume_times: Annotated[int | None, "how often it had been given back by then"]
    topic: Annotated[str, "where its record lies"]
    queue_id: Annotated[int | None, "in this queue"]
    queue_offset: Annotated[int | None, "at this place"]
    due_timestamp: Annotated[int | None, "of FAILED: when it is to be consumed again"]
    reason: Annotated[str | None, "why it failed; null where nobody kept it"]
    delay_level: Annotated[int | None, Wide("of FAILED: the delay")]
    client: Annotated[str | None, Wide("of FAILED and DEAD: the client that gave it back")]
    msg_id: Annotated[str | None, Wide("its id; one that was redriven may have a new one")]


class AgendaRow(NamedTuple):
    """Messages of one delay level that wait for one topic."""

    level: Annotated[int, "the delay level"]
    topic: Annotated[str | None, "the topic that they go to"]
    group: Annotated[str | None, "the group whose retries they are; null for delayed messages"]
    messages: Annotated[int, "how many wait"]
    next_timestamp: Annotated[int | None, "when the first of them is due"]
    last_timestamp: Annotated[int | None, "when the last of them is due"]
    overdue: Annotated[int, "how many should have gone already"]
    state: Annotated[
        str,
        "of the level: OK; OVERDUE: nobody delivers; STUCK: somebody should, and does not; "
        "AHEAD: the saved offset lies behind the queue's end",
    ]
    delay_ms: Annotated[int | None, Wide("what the level waits; null beyond the table")]
    saved_offset: Annotated[int | None, Wide("how far delayOffset.json says the level is")]
    min_offset: Annotated[int, Wide("first offset of the level's queue")]
    max_offset: Annotated[int, Wide("end of the level's queue")]


class DelayedRow(NamedTuple):
    """One message that waits for its time."""

    due_timestamp: Annotated[int, "when it is delivered"]
    msg_id: Annotated[str, "the unique id, else the offset id"]
    keys: Annotated[list[str], "the keys by which it can be found"]
    topic: Annotated[str, "the topic that it goes to"]
    queue_id: Annotated[int, "the queue that it goes to"]
    level: Annotated[int, "the delay level"]
    reconsume_times: Annotated[int, "how often it was given back; 0 for a delayed message"]
    store_timestamp: Annotated[int, "since when it waits"]
    tags: Annotated[str | None, Wide("the tag")]
    store_size: Annotated[int, Wide("the record's bytes")]
    queue_offset: Annotated[int, Wide("its place in the level's queue")]
    commitlog_offset: Annotated[int, Wide("its first byte in the commit log")]


class SentNowRow(NamedTuple):
    """One waiting message that is to go at once, or went."""

    msg_id: Annotated[str, "the unique id, else the offset id"]
    reconsume_times: Annotated[int, "how often it was given back"]
    due_timestamp: Annotated[int | None, "when it would be consumed again by itself"]
    target: Annotated[str, "the topic that it goes to"]
    reason: Annotated[str | None, "why it failed last; null where nobody kept it"]
    note: Annotated[str | None, "why it is left alone"]
    queue_offset: Annotated[int | None, OmitNull("its place there; null in a plan")]
    applied: Annotated[bool | None, OmitNull("whether it was done; null in a plan")]
