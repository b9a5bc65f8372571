"""The state of a store's broker: services, clients, waiting messages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from analytics.lag.delayed import levels, waiting_from_head
from broker.transaction.ops import HALF_QUEUE, EndedTransactions, TransactionOffsets
from rmqctl.admin.services import service
from storage.coordination.leadership import (
    BROKER_SERVICES,
    STORE_SERVICES,
    TRANSACTION_CHECKS,
)
from storage.coordination.lock_owners import find_holders
from storage.format.message import TRANS_HALF_TOPIC
from storage.layout import was_created_here

from .status_rows import BrokerStatus

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_SERVICES: Final = {
    "delay_delivery": BROKER_SERVICES,
    "transaction_checks": TRANSACTION_CHECKS,
    "cleaning": STORE_SERVICES,
}


def broker_status(broker: "EmbeddedBroker") -> BrokerStatus:
    """The whole state as it is now."""
    root = broker.view.root
    holders = find_holders(root)
    return BrokerStatus(
        broker.name,
        broker.config.broker_cluster_name,
        str(root),
        was_created_here(root),
        list(holders.writers),
        holders.java_locked,
        {name: service(broker.view, place) for name, place in _SERVICES.items()},
        list(_clients(broker)),
        list(_delay_levels(broker)),
        _half_messages(broker),
    )


def _clients(broker: "EmbeddedBroker") -> Iterator[dict[str, Any]]:
    for said in broker.members.notices.processes.living():
        for client in said.content.get("clients", ()):
            yield {
                "client_id": client["id"],
                "host": said.content["host"],
                "pid": said.content["pid"],
                "since_timestamp": client["since"],
                "producer_groups": client["producers"],
                "consumer_groups": sorted(client["consumers"]),
            }


def _delay_levels(broker: "EmbeddedBroker") -> Iterator[dict[str, Any]]:
    for level in levels(broker.view):
        if level.min_offset == level.max_offset:
            continue
        waiting, first = waiting_from_head(broker.view, level)
        # A level that the settings no longer have is shown too: nothing delivers its messages.
        yield {
            "level": level.level,
            "delay_ms": level.delay_ms,
            "offset": level.saved_offset,
            "max_offset": level.max_offset,
            "waiting": None if level.is_in_doubt else waiting,
            "due_timestamp": None if first is None else first.due_timestamp,
        }


def _half_messages(broker: "EmbeddedBroker") -> dict[str, Any]:
    """Half messages that are neither committed nor rolled back yet."""
    view = broker.view
    half, op = TransactionOffsets(broker.progress, lambda: view).query()
    low, end = view.queue_bounds(TRANS_HALF_TOPIC, HALF_QUEUE)
    ended = EndedTransactions(lambda: view, op, half)
    while half < end and ended.read_more():
        pass
    pending = [offset for offset in range(max(half, low), end) if not ended.take(offset)]
    oldest = view.store_timestamp(TRANS_HALF_TOPIC, HALF_QUEUE, pending[0]) if pending else None
    return {
        "pending": len(pending),
        "checked_offset": half,
        "max_offset": end,
        "oldest_timestamp": oldest,
    }
