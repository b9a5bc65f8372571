"""The rows of ``message search`` other than messages."""

from typing import Annotated, Any, NamedTuple, get_type_hints

from rmqctl.output.message_rows import MessageRow


class SearchCount(NamedTuple):
    """What ``--count-only`` prints."""

    hits: Annotated[int, "number of messages found"]
    searched_bytes: Annotated[int, "searched bytes of the log"]
    damaged: Annotated[int, "unreadable records that may be hits"]
    resume: Annotated[str, "token for --resume, to search later messages"]


# Rows of --around: the fields of a message, and before them whether the message is a hit.
_FIELDS: dict[str, Any] = {
    "hit": Annotated[bool, "true for a hit, false for a message around one"],
    **get_type_hints(MessageRow, include_extras=True),
}
_named_tuple: Any = NamedTuple
NearRow: Any = _named_tuple("NearRow", list(_FIELDS.items()))
