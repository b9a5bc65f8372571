"""One snapshot of the lag of groups in their topics, by progress and by live subscriptions."""

from collections import Counter
from collections.abc import Collection
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Final

from analytics.lag.lag_snapshot import LagSnapshot, Readers, look_at
from analytics.lag.selection import Choice, Offsets
from broker.members.living import members_by_group
from broker.validation import check_group, check_topic
from rmqctl.errors import NotFound

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.offset_samples import SampleHistory
    from storage.readonly import StoreView
    from storage.retention import RetentionRules

_NO_OFFSETS: Final[Offsets] = {}
_ALL: Final = Choice()


def look(
    view: "StoreView",
    broker: "Broker",
    as_of: int,
    choice: Choice = _ALL,
    history: "SampleHistory | None" = None,
    *,
    rules: "RetentionRules | None" = None,
    now: bool = True,
) -> LagSnapshot:
    """Read the store; see :func:`analytics.lag.lag_snapshot.look_at`.

    Without ``now`` it is a store as of a past time: later members and rates do not count.
    NotFound names the first unknown group or topic.
    """
    chosen = readers(view, broker, choice, members=now)
    if not now and history is None:
        from analytics.lag.trend import TREND_WINDOW_MS
        from storage.configs.offset_samples import OffsetSamples

        history = OffsetSamples(view.root).read(as_of - TREND_WINDOW_MS)
        history.forget_after(as_of)
    return look_at(view, broker.topics(), chosen, as_of, history, rules)


def readers(
    view: "StoreView", broker: "Broker", choice: Choice, *, members: bool = True
) -> Readers:
    """The selected groups and topics, sorted; with subscriptions of live ``members``, or without.

    RocketMQ's own groups only if they are named. NotFound names the first unknown group or topic.
    """
    found, alive = _readers(view, broker, members=members)
    return _chosen(view, broker, choice, found, alive)


def _readers(
    view: "StoreView", broker: "Broker", *, members: bool
) -> tuple[dict[tuple[str, str], Offsets], Counter[str]]:
    """All progress and subscriptions, and the live members of each group."""
    found: dict[tuple[str, str], Offsets] = dict(broker.consumer_offsets())
    alive: Counter[str] = Counter()
    for group, clients in (members_by_group(view.root) if members else {}).items():
        alive[group] = len(clients)
        for client in clients:
            for item in client.consumer.subscriptions:
                found.setdefault((group, item.topic), _NO_OFFSETS)
    return found, alive


def _chosen(
    view: "StoreView",
    broker: "Broker",
    choice: Choice,
    found: dict[tuple[str, str], Offsets],
    alive: Counter[str],
) -> Readers:
    _check(view, broker, choice, found)
    choice.add_retry_topics(found, view, broker.topics())
    chosen = {
        (group, topic): found[group, topic]
        for group, topic in sorted(found)
        if choice.takes(group, topic)
    }
    return Readers(chosen, alive, found)


class ReadersAgain:
    """The readers of a choice, asked for again and again: what is as before is not chosen anew."""

    def __init__(self, view: "StoreView", broker: "Broker", choice: Choice) -> None:
        self._view = view
        self._broker = broker
        self._choice = choice
        self._known: list[tuple[str, str]] | None = None
        """All groups and topics, in the order of the file; None before the first call."""
        self._all: list[Offsets] = []
        """Their offsets."""
        self._chosen: dict[tuple[str, str], Offsets] = {}

    def now(self) -> Readers:
        """See :func:`readers`."""
        found, alive = _readers(self._view, self._broker, members=True)
        keys, offsets = list(found), list(found.values())
        if self._choice.include_retry or self._choice.topics or self._known != keys:
            chosen = _chosen(self._view, self._broker, self._choice, found, alive)
            self._known, self._all = keys, offsets
            self._chosen = dict(chosen.offsets)
            return chosen
        others = [*compress(keys, map(is_not, offsets, self._all))]
        self._all = offsets
        if others:
            self._chosen = self._chosen.copy()  # the other one is part of what was returned
            self._chosen.update((key, found[key]) for key in others if key in self._chosen)
        return Readers(self._chosen, alive, found)


def _check(
    view: "StoreView", broker: "Broker", choice: Choice, found: Collection[tuple[str, str]]
) -> None:
    for group in choice.groups or ():
        if not any(group == name for name, _ in found):
            check_group(group)
            raise NotFound(f"group {group} has no progress and no members in {view.root}")
    topics = broker.topics() if choice.topics else ()
    for topic in choice.topics or ():
        if topic not in topics and not any(topic == name for _, name in found):
            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in {view.root}")
