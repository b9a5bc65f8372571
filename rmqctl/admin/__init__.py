"""Administration of a store as a library: functions and values, and no terminal.

    from rmqctl import EmbeddedBroker
    from rmqctl.admin import offsets
    from rmqctl.admin.changes import journal_note

    with EmbeddedBroker.open("demo-store", read_only=True) as store:
        orders = [offsets.TopicChoice("orders")]
        change = offsets.reset(
            store.view, store, offsets.to_latest, groups=["readers"], topics=orders
        )
        for move in change.plan:
            print(move.queue_id, move.old_offset, move.new_offset)
        change.apply(journal_note("offset reset", reason="the backlog is stale"))

The packages, whose docstrings list what there is:

    topics         settings, queues, sizes
    groups         settings, members
    lag            what groups have not read
    offsets        the progress of groups: read, compared, moved
    retries        messages that groups will consume again
    dead_letters   messages that groups gave up
    store          facts, disk use, check, repair, snapshots, recovery
    broker         settings of the broker
    audit          who changed what
    messages       one or many messages: found, searched, counted

A function takes what answers its questions: a StoreView where it reads files, and a Broker where it
asks (:class:`broker.api.broker.Broker`). A function that changes something returns a
:class:`rmqctl.admin.changes.Change`, which has the plan and writes only in ``apply``. Others return
rows: NamedTuples with the fields that the commands print. Errors are RocketMQError of the packages
below, and CliError (rmqctl.errors), whose ``exit_code`` says which kind it is.

Nothing here imports typer, rich, the command line or a module of commands; ``lint-imports`` checks
that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        audit as audit,
        broker as broker,
        dead_letters as dead_letters,
        groups as groups,
        lag as lag,
        messages as messages,
        offsets as offsets,
        retries as retries,
        store as store,
        topics as topics,
    )

__all__ = [
    *("audit", "broker", "dead_letters", "groups", "lag", "messages", "offsets", "retries"),
    *("store", "topics"),
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
