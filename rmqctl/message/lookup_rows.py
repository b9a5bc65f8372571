"""The rows of ``message trace``, ``message life`` and ``message decode-id``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Wide


class TraceRow(NamedTuple):
    """One line of a message's trace, as a client stored it."""

    at_timestamp: Annotated[int, "when, by the client's clock"]
    trace_type: Annotated[str, "Pub, SubBefore, SubAfter or EndTransaction"]
    group: Annotated[str, "of the producer or the consumers"]
    success: Annotated[bool, "whether it worked"]
    cost_ms: Annotated[int | None, "how long it took; null where nothing was measured"]
    client_host: Annotated[str, "who stored the trace"]
    retry_times: Annotated[int | None, "how often it had been given back; SubBefore only"]
    topic: Annotated[str | None, "where it was sent; null in lines of consumers"]
    msg_id: Annotated[str, Wide("the unique id")]
    tags: Annotated[str | None, Wide("the tag")]
    keys: Annotated[str | None, Wide("the keys, joined by blanks")]
    store_host: Annotated[str | None, Wide("the broker that stored it")]
    offset_msg_id: Annotated[str | None, Wide("the id that the broker gave")]
    request_id: Annotated[str | None, Wide("the same for SubBefore and SubAfter of one call")]
    context_code: Annotated[int | None, Wide("what the listener answered (ConsumeReturnType)")]
    transaction_state: Annotated[str | None, Wide("how its transaction ended")]


class LifeRow(NamedTuple):
    """One thing that happened to a message, or that a group has read past it."""

    at_timestamp: Annotated[int | None, "when; null where nobody noted it"]
    event: Annotated[
        str,
        "STORED, DELAYED, HALF, ENDED, FAILED (waits for its retry), RETRY, DEAD, REDRIVEN (sent "
        "again), READ_PAST (progress is behind it, which proves no more) or WAITING (not yet read)",
    ]
    group: Annotated[str | None, "whose retry, dead letter or progress it is"]
    topic: Annotated[str, "the record's topic"]
    queue_id: Annotated[int, "its queue"]
    queue_offset: Annotated[int, "its place in the queue"]
    reconsume_times: Annotated[int, "how often it had been given back"]
    due_timestamp: Annotated[int | None, "when it is delivered, if it waits for that"]
    reason: Annotated[str | None, "why it failed; null where the client did not say"]
    committed_offset: Annotated[int | None, "the group's progress in that queue"]
    msg_id: Annotated[str, "the record's unique id: a redriven message has its own"]
    offset_msg_id: Annotated[str, Wide("store host and log position of the record")]
    origin_msg_id: Annotated[str | None, Wide("ORIGIN_MESSAGE_ID: what was consumed first")]


class IdRow(NamedTuple):
    """What a message id tells by itself."""

    msg_id: Annotated[str, "the id"]
    kind: Annotated[str, "offset (made by a broker) or unique (made by a client), by its digits"]
    host: Annotated[str, "address of the broker, with its port, or of the client"]
    commitlog_offset: Annotated[int | None, "offset id: the log position"]
    born_timestamp: Annotated[
        int | None, "unique id: when it was made; the month is a guess, the id does not name it"
    ]
    pid: Annotated[int | None, "unique id: the client's process, its low 16 bits"]
    loader_hash: Annotated[str | None, "unique id: tells clients of one process apart, in hex"]
    counter: Annotated[int | None, "unique id: the how manieth of its process, low 16 bits"]
