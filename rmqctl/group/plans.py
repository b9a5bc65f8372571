"""Changes of a group's settings: plan, consequences and execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.errors import NoPermissionError
from broker.validation import check_group
from rmqctl.admin.unreachable_messages import retries_note, unread_of_group
from rmqctl.errors import NotFound
from rmqctl.topic.plans import said, unchanged
from storage.configs.subscription_groups import SubscriptionGroupConfig, system_groups

from .rows import ChangedGroupRow

if TYPE_CHECKING:
    from rmqctl.cli.opening import Tables
    from storage.readonly import StoreView

_NOTES: Final[Mapping[tuple[str, Any], str]] = {
    ("consume_enable", False): "its members get no messages",
    ("consume_broadcast_enable", False): "members that broadcast are refused",
    ("retry_queue_nums", 0): "failed messages are dropped without a retry",
    ("retry_max_times", 0): "a message that fails once becomes a dead letter",
}
_CLIENTS_LIMIT: Final = "consumers with a limit of their own use that; Java's always do"


class GroupChange(NamedTuple):
    """A group's settings before and after."""

    old: SubscriptionGroupConfig
    new: SubscriptionGroupConfig


def group_changes(
    tables: Tables, groups: Iterable[str], values: Mapping[str, Any]
) -> list[GroupChange]:
    """The plan of changing settings of groups; only real changes.

    NotFound for a group without settings, NoPermissionError for a group of RocketMQ itself.
    """
    changes = []
    for group in groups:
        refuse_system_group(group)
        old = tables.groups.get(group)
        if old is None:
            raise NotFound(
                f"group {group} has no settings in {tables.view.root}; "
                "'rmqctl group create' creates them"
            )
        changes.append(GroupChange(old, old._replace(**values)))
    return [change for change in changes if change.old != change.new]


def refuse_system_group(group: str) -> None:
    """Refuse an illegal name, and the groups that every broker creates at start."""
    check_group(group)
    if group in system_groups():
        raise NoPermissionError(f"group {group} belongs to the system and cannot be changed")


def change_rows(tables: Tables, changes: Iterable[GroupChange]) -> Iterator[ChangedGroupRow]:
    """A row for each changed setting, with its consequence."""
    for old, new in changes:
        for name, before, after in zip(SubscriptionGroupConfig._fields, old, new, strict=True):
            if before != after:
                note = _note(tables.view, new.group_name, name, before, after)
                yield ChangedGroupRow(new.group_name, name, said(before), said(after), note, None)


def _note(view: StoreView, group: str, name: str, before: Any, after: Any) -> str | None:
    note = _NOTES.get((name, after))
    if name == "retry_max_times":
        note = note or _CLIENTS_LIMIT
        waits = retries_note(view, group) if after < before else ""
        return (
            f"{note}; {waits}, and the new limit applies to their next failure" if waits else note
        )
    if name == "retry_queue_nums" and not after:
        waits = retries_note(view, group)
        return f"{note}; {waits}, and a retry that fails again is dropped" if waits else note
    if name == "consume_enable" and not after:
        return f"{note}{unread_of_group(view, group)}"
    return note


def change_groups(
    tables: Tables,
    changes: Iterable[GroupChange],
    note: Callable[[str], Mapping[str, Any]],
) -> Iterator[ChangedGroupRow]:
    """Write all changes and read them back; ``note`` builds the journal entry of a group.

    CliError (6) if a group was changed since the plan was made; then none is changed.
    """
    from broker.tables.shared_table import Update

    changes = list(changes)
    tables.groups.update_all(
        Update(new, note(new.group_name), unchanged(f"group {old.group_name}", old))
        for old, new in changes
    )
    for change in changes:
        now = tables.groups.get(change.new.group_name)
        for row in change_rows(tables, [change]):
            held = None if now is None else getattr(now, row.setting)
            yield row._replace(applied=said(held) == row.new)
