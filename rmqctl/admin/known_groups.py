"""Whether a store has any trace of a group."""

from typing import TYPE_CHECKING

from broker.members.living import members_by_group
from broker.validation import check_group
from rmqctl.errors import NotFound
from storage.format.message import dlq_topic, retry_topic

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView


def is_known_group(view: "StoreView", broker: "Broker", group: str) -> bool:
    """Whether a group has settings, progress, retries, dead letters or live members.

    InvalidNameError for a name that cannot be one, unless the store has it nevertheless.
    """
    if group in broker.groups() or broker.consumer_offsets(group):
        return True
    own = {retry_topic(group), dlq_topic(group)}
    if own & {*broker.topics(), *(topic for topic, _ in view.queues())}:
        return True
    if group in members_by_group(view.root):
        return True
    check_group(group)
    return False


def check_known_group(view: "StoreView", broker: "Broker", group: str) -> None:
    """NotFound for a group of which the store has no trace."""
    if not is_known_group(view, broker, group):
        raise NotFound(f"group {group} does not exist in {view.root}")


def groups_of_topic(view: "StoreView", broker: "Broker", topic: str) -> set[str]:
    """The groups with progress in a topic, or with a live member that subscribes to it."""
    found = {group for group, read in broker.consumer_offsets() if read == topic}
    for group, members in members_by_group(view.root).items():
        for member in members:
            if any(item.topic == topic for item in member.consumer.subscriptions):
                found.add(group)
    return found
