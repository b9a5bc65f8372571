"""The stores of a query, without copies and without those that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analytics.report.copies import mark_at, sort_out
from storage.errors import RocketMQError

from .log_now import LogLooks

if TYPE_CHECKING:
    from analytics.datasource.query.options import Options
    from analytics.report.stores import StoreRef

    from .log_now import LogNow

logger = logging.getLogger("rmqctl.datasource")


def kept_stores(options: Options) -> Sequence[StoreRef]:
    """The stores of ``kept_logs``. Where the options leave none out, none is looked at."""
    if options.skip_unreadable or (options.copies_once and len(options.stores) > 1):
        return [log.ref for log in kept_logs(options, LogLooks())]
    return options.stores


def kept_logs(options: Options, looks: LogLooks) -> Sequence[LogNow]:
    """The logs to read: without copies of one log, as in a lag report, unless the options say so.

    Logs each store that is left out. Raises the errors of ``StoreView.open``, unless such stores
    are to be skipped.
    """
    logs = []
    for ref in options.stores:
        try:
            logs.append(looks.look(ref))
        except (RocketMQError, OSError) as error:
            if not options.skip_unreadable:
                raise
            logger.warning("%s: left out, it cannot be read: %s", ref.broker, error)
    if not options.copies_once:
        return logs
    found = sort_out(logs, _LogLooksUp())
    for note in found.left_out:
        logger.warning("%s; copies=all reads it, too", note)
    for note in found.parted:
        logger.warning("%s", note)
    return [logs[number] for number in found.kept]


class _LogLooksUp:
    """Looks records of logs up in their files."""

    def last_marks(self, logs: Sequence[LogNow]) -> Sequence[str | None]:
        """The mark of the last record of each log, None where it is not known."""
        return [log.last_mark for log in logs]

    def marks_at(self, asked: Sequence[tuple[LogNow, Sequence[int]]]) -> list[list[str | None]]:
        """The marks of records at log offsets of logs, None where no record begins."""
        return [_marks_at(log, places) for log, places in asked]


def _marks_at(log: LogNow, places: Sequence[int]) -> list[str | None]:
    with log.opened() as files:
        return [mark_at(files, place) for place in places]
