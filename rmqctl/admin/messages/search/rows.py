"""The row of a hit, or of a message around one."""

from typing import Annotated, Any, NamedTuple, get_type_hints

from rmqctl.output.message_rows import MessageRow

# The fields of a message, and before them whether the message is a hit.
_FIELDS: dict[str, Any] = {
    "hit": Annotated[bool, "true for a hit, false for a message around one"],
    **get_type_hints(MessageRow, include_extras=True),
}
_named_tuple: Any = NamedTuple
NearRow: Any = _named_tuple("NearRow", list(_FIELDS.items()))
