"""The row of ``broker status``."""

from typing import Annotated, Any, NamedTuple


class BrokerStatus(NamedTuple):
    """The state of a store's broker: its services, clients and waiting messages."""

    name: Annotated[str, "the broker's name"]
    cluster: Annotated[str, "its cluster"]
    store: Annotated[str, "the store's folder"]
    created_here: Annotated[
        bool, "whether rmqctl created the store; its clients then run the services"
    ]
    writers: Annotated[list[int], "rmqctl processes that have the store open for writing"]
    java_locked: Annotated[bool, "whether a Java broker has the store open"]
    services: Annotated[
        dict[str, Any],
        "delay_delivery, transaction_checks, cleaning: running, and the pid of the process",
    ]
    clients: Annotated[
        list[Any],
        "client_id, host, pid, since_timestamp, producer_groups, consumer_groups of each",
    ]
    delay_levels: Annotated[
        list[Any],
        "level, delay_ms, offset, max_offset, waiting, due_timestamp of levels with messages; "
        "rmqctl writes the offset with each batch, a Java broker every 10 s, null: none is saved; "
        "waiting is null: unknown, if it is past the end",
    ]
    half_messages: Annotated[
        dict[str, Any], "pending, checked_offset, max_offset, oldest_timestamp of transactions"
    ]
