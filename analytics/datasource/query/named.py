"""Topics and groups that the options name: each is to be in one of the stores."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.report.scan import known_topics, progress_of
from storage.configs.subscription_groups import subscription_groups_file
from storage.configs.topics import topics_file
from storage.errors import CorruptFileError, RocketMQError
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from storage.readonly import StoreView

from .bounds import ANY
from .errors import OptionError
from .topics import TopicChoice, own_beginning

if TYPE_CHECKING:
    from analytics.report.stores import StoreRef

    from .bounds import Bound
    from .options import Options

_SHOWN: Final = 5


def check_named(stores: Sequence[StoreRef], options: Options, *, may_come: bool = False) -> None:
    """Raise OptionError for a topic, queue or group that is named and that no store has, and for a
    pattern without a match, unless topics that match it ``may_come``."""
    if options.table == "changes":
        return  # the journal names what is gone, too
    choice = options.topics
    bounds = [options.starting, options.ending]
    readers = {bound.group for bound in bounds if bound.group is not None}
    named = {bound.option: bound.named() for bound in bounds}
    if (
        choice == TopicChoice()
        and options.groups is None
        and not readers
        and not any(named.values())
    ):
        return
    if _are_known(stores, options, readers, bounds, may_come=may_come):
        return
    queues: set[tuple[str, str, int]] = set()
    topics: set[str] = set()
    groups: set[str] = set()
    for ref in stores:
        with StoreView.open(ref.path) as view:
            try:
                found = known_topics(view)
                topics.update(found)
                queues.update((ref.broker, *queue) for queue in view.queues())
                queues.update(
                    (ref.broker, topic, number)
                    for topic, config in found.items()
                    for number in range(config.read_queue_nums)
                )
                for group, topic in progress_of(view):
                    groups.add(group)
                    topics.add(topic)
                if options.groups is not None or readers:
                    groups.update(subscription_groups_file(view.root).read(0).items)
                    groups.update(
                        topic.removeprefix(prefix)
                        for topic in found
                        for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)
                        if topic.startswith(prefix)
                    )
            except CorruptFileError:
                return  # what is not known is not refused
    _check("topics" if choice.queues is None else "queues", "topic", choice.named, topics)
    _check_queues(choice, queues)
    if choice.pattern is not None and not may_come and not any(choice.wants(*q) for q in queues):
        raise OptionError(f"topicsPattern: {choice.pattern!r} matches no topic ({_some(topics)})")
    _check("groups", "group", options.groups, groups)
    _check("startingOffset", "group", readers, groups)
    brokers = {ref.broker for ref in stores}
    for option, places in named.items():
        _check(option, "broker", {broker for broker, _ in places} - {ANY}, brokers)
        _check(option, "topic", {topic for _, topic in places} - {""}, topics)
    for bound in bounds:
        for broker, topic, text in sorted(bound.named_queues()):
            there = _numbers(queues, None if broker == ANY else broker, topic)
            if text not in map(str, there):
                raise OptionError(_no_queue(bound.option, text, topic, there))


def _are_known(
    stores: Sequence[StoreRef],
    options: Options,
    readers: Collection[str],
    bounds: Sequence[Bound],
    *,
    may_come: bool,
) -> bool:
    """Whether all that is named is found without a look at queues; it may be there otherwise."""
    choice = options.topics
    places = {place for bound in bounds for place in bound.named()}
    brokers = {ref.broker for ref in stores}
    if not {broker for broker, _ in places} <= brokers | {ANY}:
        return False
    topics = {*(choice.names or ()), *(topic for _, topic in places if topic)}
    groups = {*(options.groups or ()), *readers}
    queues = {
        (broker, topic, queue_id)
        for broker, of_broker in (choice.queues or {}).items()
        for topic, ids in of_broker.items()
        for queue_id in ids
    }
    for broker, topic, text in (one for bound in bounds for one in bound.named_queues()):
        if not re.fullmatch(r"0|[1-9][0-9]{0,9}", text):
            return False
        queues.add((None if broker == ANY else broker, topic, int(text)))
    is_matched = choice.pattern is None or may_come
    for ref in stores:
        if not (topics or groups or queues) and is_matched:
            return True
        root = Path(ref.path)
        try:
            known = topics_file(root).read(0).items
            if groups:
                groups -= set(subscription_groups_file(root).read(0).items)
        except (RocketMQError, OSError):
            return False
        counts = {name: config.read_queue_nums for name, config in known.items()}
        topics -= counts.keys()
        queues -= {
            (broker, topic, queue_id)
            for broker, topic, queue_id in queues
            if broker in {None, ref.broker} and queue_id < counts.get(topic, 0)
        }
        is_matched = is_matched or any(
            count and choice.wants(ref.broker, topic, 0) for topic, count in counts.items()
        )
    return not (topics or groups or queues) and is_matched


def _check(option: str, what: str, named: Collection[str] | None, known: Collection[str]) -> None:
    for name in sorted(named or ()):
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else _some(known)
            raise OptionError(f"{option}: no store has a {what} {name!r} ({hint})")


def _check_queues(choice: TopicChoice, known: Collection[tuple[str, str, int]]) -> None:
    brokers = {broker for broker, _, _ in known}
    for broker, topics in (choice.queues or {}).items():
        if broker is not None and broker not in brokers:
            _check("queues", "broker", {broker}, brokers)
        for topic, ids in topics.items():
            there = _numbers(known, broker, topic)
            missing = sorted(ids - there)
            if missing:
                raise OptionError(_no_queue("queues", missing[0], topic, there))


def _numbers(known: Collection[tuple[str, str, int]], broker: str | None, topic: str) -> set[int]:
    """The queues of a topic in one broker, or in any."""
    return {number for b, t, number in known if t == topic and broker in {None, b}}


def _no_queue(option: str, number: int | str, topic: str, there: Collection[int]) -> str:
    has = ", ".join(map(str, sorted(there))) or "none"
    return f"{option}: no store has queue {number!r} of {topic!r} (there are {has})"


def _some(known: Collection[str]) -> str:
    some = [one for one in sorted(known) if own_beginning(one) is None]
    more = ", ..." if len(some) > _SHOWN else ""
    return f"there are {', '.join(some[:_SHOWN])}{more}" if some else "there is none"
