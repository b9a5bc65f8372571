"""Changes of a topic's settings: plan, consequences and execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqctl.admin.unreachable_messages import unread_note, unreadable_note
from rmqctl.errors import CliError, NotFound
from rmqctl.exit_codes import CHANGED
from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.topics import PERM_READ, PERM_WRITE, TopicConfig

from .rows import ChangedTopicRow

if TYPE_CHECKING:
    from rmqctl.cli.opening import Tables


class TopicChange(NamedTuple):
    """A topic's settings before and after."""

    old: TopicConfig
    new: TopicConfig


def topic_changes(
    tables: Tables, topics: Iterable[str], values: Mapping[str, Any]
) -> list[TopicChange]:
    """The plan of changing settings, members of TopicConfig, of topics; only real changes.

    NotFound for a missing topic; the broker's errors for one that may not be changed.
    """
    changes = []
    for topic in topics:
        tables.topics.check_changeable(topic)
        old = tables.topics.get(topic)
        if old is None:
            raise NotFound(f"topic {topic} does not exist in {tables.view.root}")
        changes.append(TopicChange(old, old._replace(**values)))
    return [change for change in changes if change.old != change.new]


def change_rows(tables: Tables, changes: Iterable[TopicChange]) -> Iterator[ChangedTopicRow]:
    """A row for each changed setting, with its consequence."""
    for old, new in changes:
        for name, before, after in zip(TopicConfig._fields, old, new, strict=True):
            if before != after:
                note = _note(tables, name, old, new)
                yield ChangedTopicRow(new.topic_name, name, said(before), said(after), note, None)


def change_topics(
    tables: Tables,
    changes: Iterable[TopicChange],
    note: Callable[[str], Mapping[str, Any]],
) -> Iterator[ChangedTopicRow]:
    """Write all changes and read them back; ``note`` builds the journal entry of a topic.

    CliError (6) if a topic was changed since the plan was made; then none is changed.
    """
    from broker.tables.shared_table import Update

    changes = list(changes)
    tables.topics.update_all(
        Update(new, note(new.topic_name), unchanged(f"topic {old.topic_name}", old))
        for old, new in changes
    )
    for change in changes:
        now = tables.topics.get(change.new.topic_name)
        for row in change_rows(tables, [change]):
            held = None if now is None else getattr(now, row.setting)
            yield row._replace(applied=said(held) == row.new)


def unchanged(what: str, seen: tuple[Any, ...]) -> Callable[[tuple[Any, ...] | None], None]:
    """A check that settings still match the plan; CliError (6) if they do not."""

    def check(now: tuple[Any, ...] | None) -> None:
        only_queues_tell = isinstance(seen, TopicConfig) and not seen.write_queue_nums
        if now != seen and not (now is None and only_queues_tell):
            raise CliError(
                f"{what} was changed since the plan was made; nothing was written", CHANGED
            )

    return check


def said(value: Any) -> str:
    """A setting's value as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def groups_of_topic(tables: Tables, topic: str) -> dict[str, int]:
    """Groups with progress in a topic, with the number of queues."""
    found = {}
    for key, queues in tables.view.consumer_offsets().items():
        parts = split_topic_at_group(key)
        if parts is not None and parts[0] == topic and queues:
            found[parts[1]] = len(queues)
    return dict(sorted(found.items()))


def messages_of_topic(tables: Tables, topic: str) -> dict[int, int]:
    """Stored messages in each queue of a topic that has or had messages."""
    view = tables.view
    bounds = {
        queue_id: view.queue_bounds(topic, queue_id)
        for name, queue_id in view.queues()
        if name == topic
    }
    return {queue_id: high - low for queue_id, (low, high) in bounds.items()}


def _note(tables: Tables, name: str, old: TopicConfig, new: TopicConfig) -> str | None:
    view, topic = tables.view, old.topic_name
    if name == "read_queue_nums" and new.read_queue_nums < old.read_queue_nums:
        return unread_note(view, topic, new.read_queue_nums)
    if name == "write_queue_nums" and new.write_queue_nums < old.write_queue_nums:
        return f"queues from {new.write_queue_nums} on take no new messages"
    if name == "write_queue_nums" and new.write_queue_nums > new.read_queue_nums:
        return f"consumers do not read queues from {new.read_queue_nums} on"
    if name == "perm":
        lost = [
            words
            for bit, words in ((PERM_WRITE, "sending"), (PERM_READ, "consuming"))
            if old.perm & bit and not new.perm & bit
        ]
        if not lost:
            return None
        unread = unreadable_note(view, topic) if "consuming" in lost else ""
        return f"{' and '.join(lost)} will be refused{unread}"
    return None
