"""The row of ``message search --count-only``."""

from typing import Annotated, NamedTuple


class SearchCount(NamedTuple):
    """What ``--count-only`` prints."""

    hits: Annotated[int, "number of messages found"]
    searched_bytes: Annotated[int, "searched bytes of the log"]
    damaged: Annotated[int, "unreadable records that may be hits"]
    resume: Annotated[str, "token for --resume, to search later messages"]
