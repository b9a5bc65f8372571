"""The rows of the ``broker`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Wide


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
        "the offset is written every 10 s",
    ]
    half_messages: Annotated[
        dict[str, Any], "pending, checked_offset, max_offset, oldest_timestamp of transactions"
    ]


class BrokerSettingRow(NamedTuple):
    """One setting of a store's broker."""

    setting: Annotated[str, "the setting, as broker.config and storage.config name it"]
    old: Annotated[str | None, OmitNull("value before the change")]
    value: Annotated[str | None, "the value, or the new one; null if it depends on the store"]
    origin: Annotated[str, "built-in, rmqctl/settings.json, or the store's files"]
    broker_conf: Annotated[
        str | None, "the line for a Java broker's broker.conf; null if there is none"
    ]
    fixed: Annotated[bool, Wide("whether it is fixed for the life of the store")]
    meaning: Annotated[str, Wide("what the setting means")]
    applied: Annotated[bool | None, OmitNull("whether the change was made; null in a plan")]
