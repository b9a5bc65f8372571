"""The rows of ``message trace``, ``message life`` and ``message decode-id``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank, Wide


class TraceRow(NamedTuple):
    """One record of a message's trace, as stored by a client."""

    at_timestamp: Annotated[
        int | None, "time, by the client's clock; null if the record does not say it"
    ]
    trace_type: Annotated[str, "Pub, SubBefore, SubAfter or EndTransaction", Rank.KEY]
    group: Annotated[
        str | None, "the producer group or consumer group; null if the record does not say it"
    ]
    success: Annotated[bool | None, "whether it succeeded; null where no record says so", Rank.KEY]
    cost_ms: Annotated[int | None, "duration; null if it was not measured"]
    client_host: Annotated[str, "the client that stored the trace"]
    retry_times: Annotated[int | None, "how often it was sent back; SubBefore only"]
    topic: Annotated[str | None, "the topic; null in records of consumers"]
    msg_id: Annotated[str, Wide("the unique id")]
    tags: Annotated[str | None, Wide("the tag")]
    keys: Annotated[str | None, Wide("the keys, joined by blanks")]
    store_host: Annotated[str | None, Wide("the broker that stored the message")]
    offset_msg_id: Annotated[str | None, Wide("the offset id")]
    request_id: Annotated[str | None, Wide("common to SubBefore and SubAfter of one call")]
    context_code: Annotated[int | None, Wide("result of the listener (ConsumeReturnType)")]
    transaction_state: Annotated[str | None, Wide("outcome of its transaction")]


class LifeRow(NamedTuple):
    """One event in the history of a message."""

    at_timestamp: Annotated[int | None, "time of the event; null if it was not recorded", Rank.KEY]
    event: Annotated[
        str,
        "STORED, DELAYED, HALF, ENDED, FAILED (waits for its retry), RETRY, DEAD, REDRIVEN (sent "
        "again), READ_PAST (progress is past it, which proves no more) or WAITING (not yet read)",
    ]
    group: Annotated[str | None, "the group of the retry, the dead letter or the progress"]
    topic: Annotated[str, "the record's topic", Rank.MAIN]
    queue_id: Annotated[int, "its queue", Rank.USUAL]
    queue_offset: Annotated[int, "its queue offset", Rank.MAIN]
    reconsume_times: Annotated[int, "how often it was sent back"]
    due_timestamp: Annotated[int | None, "when it is due, if it waits for delivery"]
    reason: Annotated[str | None, "failure reason; null if the client did not record it", Rank.KEY]
    committed_offset: Annotated[int | None, "the group's progress in that queue"]
    msg_id: Annotated[str, "the record's unique id: a redriven message has its own"]
    offset_msg_id: Annotated[str, Wide("store host and log position of the record")]
    origin_msg_id: Annotated[str | None, Wide("ORIGIN_MESSAGE_ID: the original message")]


class IdRow(NamedTuple):
    """A decoded message id."""

    msg_id: Annotated[str, "the id"]
    kind: Annotated[str, "offset (made by a broker) or unique (made by a client), by its digits"]
    host: Annotated[str, "address of the broker, with port, or of the client"]
    commitlog_offset: Annotated[int | None, "offset id: the log position"]
    born_timestamp: Annotated[
        int | None, "unique id: its time; the month is a guess, as the id does not contain it"
    ]
    pid: Annotated[int | None, "unique id: the client's process, its low 16 bits"]
    loader_hash: Annotated[str | None, "unique id: distinguishes clients of one process, in hex"]
    counter: Annotated[int | None, "unique id: counter of its process, low 16 bits"]
