"""The rows of ``message search`` that are not messages alone."""

from typing import Annotated, Any, NamedTuple, get_type_hints

from rmqctl.message.rows import MessageRow


class SearchCount(NamedTuple):
    """What ``--count-only`` prints."""

    hits: Annotated[int, "messages that were found"]
    searched_bytes: Annotated[int, "how much of the log was gone through"]
    damaged: Annotated[int, "records that may be hits but can not be read"]
    resume: Annotated[str, "for --resume: goes on with what is stored later"]


# What --around prints: the fields of a message, and before them whether it is one that was found.
_FIELDS: dict[str, Any] = {
    "hit": Annotated[bool, "found, or only near one that was"],
    **get_type_hints(MessageRow, include_extras=True),
}
_named_tuple: Any = NamedTuple
NearRow: Any = _named_tuple("NearRow", list(_FIELDS.items()))
