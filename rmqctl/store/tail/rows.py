"""The rows of ``store tail``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank, Wide


class TailRow(NamedTuple):
    """A record of the log, or a part of the log without a readable record."""

    commitlog_offset: Annotated[int, "its start in the log"]
    topic: Annotated[str | None, "the topic; null for a part that is not a record"]
    queue_id: Annotated[int | None, "the queue"]
    queue_offset: Annotated[int | None, "its queue offset"]
    store_timestamp: Annotated[int | None, "when it was stored"]
    size: Annotated[int, "number of bytes in the log"]
    tags: Annotated[str | None, "the tag", Rank.USUAL] = None
    keys: Annotated[list[str] | None, "the keys", Rank.USUAL] = None
    problem: Annotated[str | None, "what is wrong with it"] = None
    msg_id: Annotated[str | None, Wide("the unique id, else the offset id")] = None
    body_size: Annotated[int | None, Wide("bytes of the body as stored")] = None
    sys_flag: Annotated[int | None, Wide("compression, transaction, IPv6")] = None
    reconsume_times: Annotated[int | None, Wide("how often it was sent back")] = None
    born_timestamp: Annotated[int | None, Wide("when the producer created it")] = None
    born_host: Annotated[str | None, Wide("the producer's address")] = None
    properties: Annotated[dict[str, str] | None, Wide("every property as stored")] = None
