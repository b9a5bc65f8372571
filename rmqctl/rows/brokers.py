"""The row of ``broker status``."""

from typing import Annotated, Any, NamedTuple


class BrokerStatus(NamedTuple):
    """What the processes on a store do as its broker."""

    name: Annotated[str, "the broker's name"]
    cluster: Annotated[str, "its cluster"]
    store: Annotated[str, "the store's folder"]
    created_here: Annotated[bool, "rmqctl made the store: its processes deliver by the way"]
    writers: Annotated[list[int], "processes of rmqctl that have it open for writing"]
    java_locked: Annotated[bool, "whether a Java broker has it open"]
    services: Annotated[
        dict[str, Any],
        "delay_delivery, transaction_checks, cleaning: running, and the pid of who does it",
    ]
    clients: Annotated[
        list[Any],
        "client_id, host, pid, since_timestamp, producer_groups, consumer_groups of each",
    ]
    delay_levels: Annotated[
        list[Any],
        "level, delay_ms, offset, max_offset, waiting, due_timestamp of levels with messages; "
        "the offset is written every 10 s",
    ]
    half_messages: Annotated[
        dict[str, Any], "pending, checked_offset, max_offset, oldest_timestamp of transactions"
    ]
