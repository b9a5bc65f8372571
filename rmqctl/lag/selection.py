"""Groups and their topics, by progress and by the subscriptions of live members."""

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.lag.lag_snapshot import Readers
from analytics.lag.selection import Choice, Offsets
from broker.validation import check_group, check_topic
from rmqctl.errors import NotFound
from storage.format.names import MEMBERS_FOLDER, OURS

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.coordination.processes import ProcessInfo

_NO_OFFSETS: Final[Offsets] = {}


def readers(broker: "EmbeddedBroker", choice: Choice, *, members: bool = True) -> Readers:
    """The selected groups and topics, sorted; with subscriptions of live ``members``, or without.

    RocketMQ's own groups only if they are named. NotFound names the first unknown group or topic.
    """
    found: dict[tuple[str, str], Offsets] = dict(broker.consumer_offsets())
    living = _living(broker.view.root) if members else []
    alive = _add_members(found, living) if living else Counter()
    _check(broker, choice, found)
    choice.add_retry_topics(found, broker.view, broker.topics())
    chosen = {
        (group, topic): found[group, topic]
        for group, topic in sorted(found)
        if choice.takes(group, topic)
    }
    return Readers(chosen, alive, found)


def _living(root: Path) -> "list[ProcessInfo]":
    if not (root / OURS / MEMBERS_FOLDER).is_dir():
        return []
    from storage.coordination.processes import (
        ProcessEntries,  # most stores have never had a member
    )

    return ProcessEntries(root).living()


def _add_members(
    found: dict[tuple[str, str], Offsets], living: "Iterable[ProcessInfo]"
) -> Counter[str]:
    """Add the subscriptions of live members; returns the number of members per group."""
    # Most stores have no members: then this is not imported.
    from broker.members.process_info_json import groups_of, members_of

    alive: Counter[str] = Counter()
    for said in living:
        for group in groups_of(said):
            for member in members_of(said, group):
                alive[group] += 1
                for item in member.consumer.subscriptions:
                    found.setdefault((group, item.topic), _NO_OFFSETS)
    return alive


def _check(broker: "EmbeddedBroker", choice: Choice, found: Collection[tuple[str, str]]) -> None:
    for group in choice.groups or ():
        if not any(group == name for name, _ in found):
            check_group(group)
            raise NotFound(f"group {group} has no progress and no members in {broker.view.root}")
    topics = broker.topics() if choice.topics else ()
    for topic in choice.topics or ():
        if topic not in topics and not any(topic == name for _, name in found):
            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in {broker.view.root}")
