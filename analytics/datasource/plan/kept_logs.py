"""The stores of a query, without copies and without those that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.datasource.query.errors import DamagedError
from analytics.datasource.query.tables import FAIL
from analytics.report.copies import mark_at, sort_out
from storage.detect import detect_config
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
    are to be skipped; DamagedError for a log that has lost its end, if ``onDamage`` is fail.
    """
    logs = []
    for ref in options.stores:
        try:
            logs.append(looks.look(ref))
        except (RocketMQError, OSError) as error:
            if not options.skip_unreadable:
                raise
            _tell_unreadable(ref, error)
    if not options.copies_once:
        return _with_ends(options, looks, logs)
    while True:
        looks_up = _LogLooksUp(options)
        found = sort_out(logs, looks_up)
        if not looks_up.gone:
            break
        logs = [log for log in logs if log.ref not in looks_up.gone]
    for note in found.left_out:
        logger.warning("%s; copies=all reads it, too", note)
    for note in found.parted:
        logger.warning("%s", note)
    return _with_ends(options, looks, [logs[number] for number in found.kept])


def _with_ends(options: Options, looks: LogLooks, logs: Sequence[LogNow]) -> Sequence[LogNow]:
    for log in logs:
        if log.lost is None:
            continue
        if options.table == "messages" and options.on_damage == FAIL:
            raise DamagedError(f"{log.lost}; onDamage=skip reads those before them")
        if log.lost not in looks.logged:
            logger.warning("%s", log.lost)
            looks.logged.add(log.lost)
    return logs


def _tell_unreadable(ref: StoreRef, error: Exception) -> None:
    logger.warning("%s: left out, it cannot be read: %s", ref.broker, error)


class _LogLooksUp:
    """Looks records of logs up in their files; ``gone`` gets the stores that cannot be read any
    more, if such stores are to be skipped."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.gone: set[StoreRef] = set()

    def last_marks(self, logs: Sequence[LogNow]) -> Sequence[str | None]:
        """The mark of the last record of each log, None where it is not known."""
        return [log.last_mark for log in logs]

    def marks_at(self, asked: Sequence[tuple[LogNow, Sequence[int]]]) -> list[list[str | None]]:
        """The marks of records at log offsets of logs, None where no record begins. Raises the
        errors of ``StoreView.open``."""
        return [self._marks_at(log, places) for log, places in asked]

    def _marks_at(self, log: LogNow, places: Sequence[int]) -> list[str | None]:
        try:
            detect_config(Path(log.ref.path), reading=True, log_only=True)  # it is still there
            with log.opened() as files:
                return [mark_at(files, place) for place in places]
        except (RocketMQError, OSError) as error:
            if not self._options.skip_unreadable:
                raise
            _tell_unreadable(log.ref, error)
            self.gone.add(log.ref)
            return [None] * len(places)
