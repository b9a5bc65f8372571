"""Whether a store has any trace of a group."""

from typing import TYPE_CHECKING

from broker.validation import check_group
from rmqctl.errors import NotFound
from storage.format.message import dlq_topic, retry_topic

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView


def check_known_group(view: "StoreView", broker: "Broker", group: str) -> None:
    """NotFound for a group without settings, progress, retries and dead letters."""
    check_group(group)
    if group in broker.groups() or broker.consumer_offsets(group):
        return
    own = {retry_topic(group), dlq_topic(group)}
    if own & {*broker.topics(), *(topic for topic, _ in view.queues())}:
        return
    raise NotFound(f"group {group} does not exist in {view.root}")
