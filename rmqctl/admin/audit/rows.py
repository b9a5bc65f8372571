"""The rows of ``offset history`` and of the ``audit`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Null, OmitNull, Rank


class ChangeRow(NamedTuple):
    """One effect of a change: on a queue's progress, or on a setting."""

    change_id: Annotated[
        int | None, "number in the journal; null for a move that is not in the journal"
    ]
    at_timestamp: Annotated[
        int | None, "time of the change; for a move that is not in the journal: first seen"
    ]
    command: Annotated[str | None, "the command, without its options"]
    group: Annotated[str | None, "the consumer group"]
    topic: Annotated[str | None, "the topic"]
    queue_id: Annotated[int | None, "the queue"]
    old_offset: Annotated[int | None, "progress before the change; null for none", Rank.KEY]
    new_offset: Annotated[int | None, "progress after the change; null if it was deleted", Rank.KEY]
    user: Annotated[str | None, "the user who made the change", Rank.USUAL]
    host: Annotated[str | None, "the machine", Rank.EXTRA]
    reason: Annotated[str | None, "the text of --reason", Rank.USUAL]
    undone_by: Annotated[int | None, "the change that undid it", Rank.USUAL]
    applied: Annotated[
        bool | None,
        "whether it was made; false if its writer died before; null if unknown",
        Rank.USUAL,
        Null.UNKNOWN,
    ]
    what: Annotated[
        str | None, OmitNull("the setting or the action, for other changes than of progress")
    ]
    old: Annotated[Any, OmitNull("value before the change")]
    new: Annotated[Any, OmitNull("value after the change")]
    note: Annotated[str | None, OmitNull("what is known of a move that is not in the journal")]


class MovedRow(NamedTuple):
    """Progress in a queue before and after a change."""

    group: str
    topic: str
    queue_id: int
    old_offset: int | None
    new_offset: int | None


class ChangeDetails(NamedTuple):
    """One change with everything that the journal has about it."""

    change_id: Annotated[int, "number in the journal"]
    at_timestamp: Annotated[int, "when it was recorded, right before it was made"]
    command: Annotated[str | None, "the command, without its options"]
    user: Annotated[str | None, "the user who made the change"]
    host: Annotated[str | None, "the machine"]
    reason: Annotated[str | None, "the text of --reason"]
    applied: Annotated[
        bool | None, "whether it was made; false if its writer died before; null if unknown"
    ]
    undo_of: Annotated[int | None, "the change that it undid"]
    undone_by: Annotated[int | None, "the change that undid it"]
    group: Annotated[str | None, OmitNull("the consumer group")]
    topic: Annotated[str | None, OmitNull("the topic")]
    what: Annotated[str | None, OmitNull("the setting or the action")]
    old: Annotated[Any, OmitNull("value before the change")]
    new: Annotated[Any, OmitNull("value after the change")]
    moves: Annotated[list[MovedRow] | None, OmitNull("the moved progress, by queue")]
    more: Annotated[dict[str, Any] | None, OmitNull("further recorded fields")]
