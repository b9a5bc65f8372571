"""Whether a store has any trace of a group."""

from typing import TYPE_CHECKING

from broker.validation import check_group
from rmqctl.errors import NotFound
from storage.format.message import dlq_topic, retry_topic

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker


def check_known_group(broker: "EmbeddedBroker", group: str) -> None:
    """NotFound for a group without settings, progress, retries and dead letters."""
    check_group(group)
    if group in broker.groups() or broker.consumer_offsets(group):
        return
    own = {retry_topic(group), dlq_topic(group)}
    if own & {*broker.topics(), *(topic for topic, _ in broker.view.queues())}:
        return
    raise NotFound(f"group {group} does not exist in {broker.view.root}")
