"""The ranges that a batch reads, and a word in the log where its bounds leave nothing to read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analytics.datasource.query.bounds import BEGIN, END
from storage.counted import counted

from .ranges import Range, given_limits, queue_ranges

if TYPE_CHECKING:
    from analytics.datasource.query.options import Options
    from analytics.datasource.query.selection import Selection

    from .log_now import LogNow

logger = logging.getLogger("rmqctl.datasource")


def batch_ranges(logs: Sequence[LogNow], options: Options, chosen: Selection) -> list[Range]:
    """The ranges of the selected queues of stores. A log line names queues that end before they
    begin, and says why the bounds leave no message of all."""
    stores = [log.ref for log in logs]
    crossed: list[str] = []
    limits = given_limits(options, crossed)
    records = options.table == "messages"
    found = list(queue_ranges(stores, options.topics, chosen, limits, records=records))
    if not found and limits is not None:
        whole = queue_ranges(stores, options.topics, chosen, records=False)
        if next(whole, None) is not None:  # else nothing is selected, whatever the bounds
            warn_of_no_rows(logs, options)
    elif crossed:
        logger.warning(
            "%s lies after %s in %s, of which nothing is read; the first is %s",
            *(options.starting.option, options.ending.option),
            *(counted(len(crossed), "queue"), crossed[0]),
        )
    return found


def warn_of_no_rows(logs: Sequence[LogNow], options: Options) -> None:
    """Say why the bounds of a batch leave no message. A group that has read all needs no word."""
    logs = [log for log in logs if log.begin < log.end]
    if (
        logs
        and options.starting.group is None
        and (options.starting, options.ending) != (BEGIN, END)
    ):
        logger.warning("the query has no rows: %s", _why(logs, options))


def _why(logs: Sequence[LogNow], options: Options) -> str:
    start, end = options.starting, options.ending
    first, last = min(log.begin for log in logs), max(log.end for log in logs)
    if start.log_offset is not None and start.log_offset >= last:
        return f"{start.option}: {start.log_offset} lies past the end of the log, which is {last}"
    if end.log_offset is not None and end.log_offset <= first:
        return f"{end.option}: {end.log_offset} is not after the beginning of the log, {first}"
    if (
        isinstance(start.value, int)
        and isinstance(end.value, int)
        and start.is_time == end.is_time
        and start.value >= end.value
    ):
        return f"{start.option} ({start.value}) is not before {end.option} ({end.value})"
    if start.is_time and end == END:
        return f"{start.option}: no message was stored then or later"
    if end.is_time and start == BEGIN:
        return f"{end.option}: all messages were stored then or later"
    return f"no message lies between {start.option} and {end.option}"
