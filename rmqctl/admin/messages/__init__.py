"""Messages: read, found, searched, counted.

One or many, as MessageExt, which ``rows_of`` makes the rows of the commands of:

    at_offset       the message at an offset of a queue
    in_queue        the messages of a queue, from an offset or a time on
    with_id         all messages with a unique or offset id
    with_key        all messages with a key; ``Look`` says where it is searched
    with_tag        all messages with a tag
    read_messages   the messages at log offsets
    rows_of         a MessageRow for each message

What is known of one message:

    life            its records in log order, and the groups that have read past it
    trace           what clients with tracing stored about it
    decode_id       what an id contains; no store is needed

The whole log, or a part of it:

    search_query    what is searched for: a Query. ``Contains`` makes it faster
    Search          a search: its messages, or part by part with its progress (SearchPart)
    HitRows         the rows of its hits, on request with the messages around them
    stats           a Stats: the messages of a query counted, in total or by a property
    stats_row_type  the type of the rows of Stats

Messages and rows come from generators, which read as far as they are asked; closing one ends its
work, also that of other processes. Arguments of the same name are alike:

    view            the files of the store
    topics          None: all
    wanted          a MessageFilter
    left_out        called with a sentence for what cannot be read and is left out
    on_progress     called with the scanned bytes and the total, for each scan of the log
    jobs            processes of a scan, default: one for each processor. With 1 no process is
                    forked; give that in a program with threads

They raise NotFound for an unknown topic, queue or message, InvalidNameError for a name that cannot
be one, and CliError (exit code 4) for one message that is damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .by_id import with_id as with_id
    from .by_key import with_key as with_key, with_tag as with_tag
    from .by_place import at_offset as at_offset, in_queue as in_queue
    from .id_decoding import decode_id as decode_id
    from .message_rows import rows_of as rows_of
    from .search.hit_rows import HitRows as HitRows
    from .search.keys import Look as Look, read_messages as read_messages
    from .search.query import (
        Contains as Contains,
        Query as Query,
        search_query as search_query,
    )
    from .search.run import Search as Search, SearchPart as SearchPart
    from .statistics import (
        Stats as Stats,
        stats as stats,
        stats_row_type as stats_row_type,
    )
    from .timeline import life as life
    from .traces import trace as trace

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "by_id": ("with_id",),
        "by_key": ("with_key", "with_tag"),
        "by_place": ("at_offset", "in_queue"),
        "id_decoding": ("decode_id",),
        "message_rows": ("rows_of",),
        "search.hit_rows": ("HitRows",),
        "search.keys": ("Look", "read_messages"),
        "search.query": ("Contains", "Query", "search_query"),
        "search.run": ("Search", "SearchPart"),
        "statistics": ("Stats", "stats", "stats_row_type"),
        "timeline": ("life",),
        "traces": ("trace",),
    },
)
