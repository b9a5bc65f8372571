"""The rows of ``offset inspect --around``."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rmqctl.output.message_rows import (
    MessageRow,
    json_message_row,
    message_row,
    with_encoding,
)

if TYPE_CHECKING:
    from storage.format.message import MessageExt


def _message_row_after(**first: Any) -> Any:
    """The type of a message's row with more fields in front."""
    return NamedTuple("AroundRow", [*first.items(), *MessageRow.__annotations__.items()])


AroundRow = _message_row_after(
    group=Annotated[str, "the consumer group"],
    distance=Annotated[int, "messages from the position: 0 is read next, -1 is the one before"],
)
"""A message near a group's position: the row of ``consume``, and how far it is from there."""


AroundRowOfJson = with_encoding(AroundRow)
"""The same with ``--body json``."""


def around_row(group: str, position: int, message: "MessageExt", body_form: str) -> Any:
    """The row of a message near a position; ``body_form`` as for :func:`message_row`."""
    row = message_row(message, body_form)
    return AroundRow(group, row.queue_offset - position, *row)


def around_row_of_json(group: str, position: int, message: "MessageExt") -> Any:
    """The same; a body that is JSON is a value."""
    row = json_message_row(message)
    return AroundRowOfJson(group, row.queue_offset - position, *row)
