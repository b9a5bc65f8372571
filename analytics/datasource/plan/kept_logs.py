"""The stores of a query, without copies and without those that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analytics.report.copies import without_copies
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
    kept, notes = without_copies(logs) if options.copies_once else (logs, [])
    for note in notes:
        logger.warning("%s; copies=all reads it, too", note)
    return kept
