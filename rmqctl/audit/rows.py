"""The rows of ``offset history`` and of the ``audit`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull


class ChangeRow(NamedTuple):
    """What a change did to one thing: a queue's progress, or a setting."""

    change_id: Annotated[int | None, "the journal's number; null for what nobody noted"]
    at_timestamp: Annotated[int | None, "when it was done; of what nobody noted: first seen"]
    command: Annotated[str | None, "the command, without its options"]
    group: Annotated[str | None, "the consumer group that it is about"]
    topic: Annotated[str | None, "the topic that it is about"]
    queue_id: Annotated[int | None, "the queue"]
    old_offset: Annotated[int | None, "the group's progress before; null for none"]
    new_offset: Annotated[int | None, "its progress after; null if it was forgotten"]
    user: Annotated[str | None, "who did it"]
    host: Annotated[str | None, "on which machine"]
    reason: Annotated[str | None, "why, as given with --reason"]
    undone_by: Annotated[int | None, "the change that took it back"]
    applied: Annotated[
        bool | None, "false if its writer died before it was done; null if that is unknown"
    ]
    what: Annotated[str | None, OmitNull("the setting or the action, where it is no progress")]
    old: Annotated[Any, OmitNull("the setting before")]
    new: Annotated[Any, OmitNull("the setting after")]
    note: Annotated[str | None, OmitNull("what is known of a change that nobody noted")]


class MovedRow(NamedTuple):
    """A queue's progress before and after a change."""

    group: str
    topic: str
    queue_id: int
    old_offset: int | None
    new_offset: int | None


class ChangeDetails(NamedTuple):
    """One change with everything that the journal has of it."""

    change_id: Annotated[int, "the journal's number"]
    at_timestamp: Annotated[int, "when it was noted, right before it was done"]
    command: Annotated[str | None, "the command, without its options"]
    user: Annotated[str | None, "who did it"]
    host: Annotated[str | None, "on which machine"]
    reason: Annotated[str | None, "why, as given with --reason"]
    applied: Annotated[
        bool | None, "false if its writer died before it was done; null if that is unknown"
    ]
    undo_of: Annotated[int | None, "the change that it took back"]
    undone_by: Annotated[int | None, "the change that took it back"]
    group: Annotated[str | None, OmitNull("the consumer group that it is about")]
    topic: Annotated[str | None, OmitNull("the topic that it is about")]
    what: Annotated[str | None, OmitNull("the setting or the action")]
    old: Annotated[Any, OmitNull("the setting before")]
    new: Annotated[Any, OmitNull("the setting after")]
    moves: Annotated[list[MovedRow] | None, OmitNull("the progress that it moved, by queue")]
    more: Annotated[dict[str, Any] | None, OmitNull("whatever else was noted")]
