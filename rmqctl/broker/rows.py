"""The rows of the ``broker`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Wide


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


class BrokerSettingRow(NamedTuple):
    """One setting of a store's broker."""

    setting: Annotated[str, "the setting, as broker.config and storage.config name it"]
    old: Annotated[str | None, OmitNull("what it was, where it is changed")]
    value: Annotated[str | None, "what it is, or will be; null where it depends on the store"]
    origin: Annotated[str, "built-in, rmqctl/settings.json, or the store's files"]
    broker_conf: Annotated[
        str | None, "the line of a Java broker's broker.conf; null if it has none"
    ]
    fixed: Annotated[bool, Wide("whether it holds for the life of the store")]
    meaning: Annotated[str, Wide("what it is")]
    applied: Annotated[bool | None, OmitNull("whether it is so now; null in a plan")]
