"""Topics and groups that the options name: each is to be in one of the stores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from analytics.report.scan import known_topics, progress_of
from storage.configs.subscription_groups import subscription_groups_file
from storage.errors import CorruptFileError
from storage.readonly import StoreView

from .options import OptionError, Options

if TYPE_CHECKING:
    from analytics.report.stores import StoreRef

_SHOWN: Final = 5


def check_named(stores: Sequence[StoreRef], options: Options) -> None:
    """Raise OptionError for a topic or a group that is named and that no store has."""
    if options.topics is None and options.groups is None:
        return
    topics: set[str] = set()
    groups: set[str] = set()
    for ref in stores:
        with StoreView.open(ref.path) as view:
            try:
                topics.update(known_topics(view))
                for group, topic in progress_of(view):
                    groups.add(group)
                    topics.add(topic)
                if options.groups is not None:
                    groups.update(subscription_groups_file(view.root).read(0).items)
            except CorruptFileError:
                return  # what is not known is not refused
    _check("topics", "topic", options.topics, topics)
    _check("groups", "group", options.groups, groups)


def _check(option: str, what: str, named: Collection[str] | None, known: Collection[str]) -> None:
    for name in sorted(named or ()):
        if name not in known:
            near = get_close_matches(name, known, 1)
            some = [one for one in sorted(known) if not one.startswith(("%", "RMQ_SYS_"))]
            more = ", ..." if len(some) > _SHOWN else ""
            there = f"there are {', '.join(some[:_SHOWN])}{more}" if some else "there is none"
            hint = f"did you mean {near[0]}?" if near else there
            raise OptionError(f"{option}: no store has a {what} {name!r} ({hint})")
