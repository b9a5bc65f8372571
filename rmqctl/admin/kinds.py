"""Rows of users, and of RocketMQ itself: by the kinds of their topics and groups."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from broker.java_store import config_of
from broker.tables.kinds import NORMAL, TopicKinds, group_kind

if TYPE_CHECKING:
    from storage.readonly import StoreView


def topic_kinds(view: "StoreView") -> TopicKinds:
    """The kinds of the topics of a store."""
    config = config_of(view.root, reading=True)
    return TopicKinds(config.broker_cluster_name, config.broker_name)


class UsersRows:
    """Rows of users' topics and groups; counts the others."""

    def __init__(self, rows: Iterable[Any], view: "StoreView") -> None:
        self._rows = rows
        self._kinds = topic_kinds(view)
        self.hidden = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows:
            if self._is_users(row):
                yield row
            else:
                self.hidden += 1

    def _is_users(self, row: Any) -> bool:
        kind = getattr(row, "kind", None)
        if kind is not None:
            return bool(kind == NORMAL)
        group, topic = getattr(row, "group", None), getattr(row, "topic", None)
        if group is not None and group_kind(group) != NORMAL:
            return False
        return topic is None or self._kinds.of(topic) == NORMAL
