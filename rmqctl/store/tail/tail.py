"""Following the log as it grows, record by record, with any writer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rmqctl.errors import NotFound
from storage.format.java_numbers import parse_digits
from storage.format.layout import BLANK_SIZE
from storage.format.record import RecordError, decode_record
from storage.log.record_finder import RecordFinder
from storage.log.walk import LogWalk, StretchKind
from storage.parse.times import parse_time

from .rows import TailRow

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from rmqctl.cli.context import Cli
    from storage.files.read_files import ReadMap
    from storage.readonly import StoreView

_MAX_HEADROOM: Final = 64 << 10


class LogTail:
    """A position in a store's log. :meth:`rows` continues from there; takes no lock.

    ``say`` is called with a sentence if the log was truncated, or its start deleted before it was
    shown.
    """

    def __init__(self, view: "StoreView", position: int, say: "Callable[[str], None]") -> None:
        self._view = view
        self._log = view.files.apart().log
        self.position = position
        """Commit log offset after the shown records."""
        self._say = say
        self._since = 0

    def skip_before(self, timestamp: int) -> None:
        """Skip records up to the first one stored at or after a time (ms)."""
        self._since = timestamp

    def rows(self, end: int) -> Iterator[TailRow]:
        """Rows from the position to ``end``, the current end of the log.

        What is lost has no time: while records are skipped by time, it is taken for as old as the
        next one.
        """
        lost: list[TailRow] = []
        for row in self._rows(end):
            stored = row.store_timestamp
            if self._since and stored is None:
                lost.append(row)
            elif self._since and stored is not None and stored < self._since:
                lost.clear()
            else:
                self._since = 0
                yield from lost
                lost.clear()
                yield row
        yield from lost

    def _rows(self, end: int) -> Iterator[TailRow]:
        if not self._find_way(end):
            return
        walk = LogWalk(self._log, self.position, limit=end, search_all=True)
        while (stretch := walk.next()) is not None:
            place = stretch.start
            file = self._log.at(place - place % self._log.file_size)
            if stretch.kind is StretchKind.BLANK or file is None:
                self.position = walk.position
                continue
            for size in stretch.sizes:
                row = self._row(file, place, size, stretch.kind, stretch.reason)
                place += size
                self.position = place
                yield row
            self.position = walk.position
        if self.position < end:  # no further record follows
            rest = self._log.file_size - self.position % self._log.file_size
            size = min(rest, end - self.position)
            yield _lost(self.position, size, walk.stop_reason)
            self.position += size

    def _find_way(self, end: int) -> bool:
        """Whether there are records; corrects the position if the log lost it."""
        low = self._view.log_min_offset()
        if self.position < low:
            self._say(
                f"the log now begins at {low}: {low - self.position:,} bytes from "
                f"{self.position} on were deleted before they were shown"
            )
            self.position = low
        if self.position > end:
            self._say(f"the log now ends at {end}: records shown after that are gone")
            self.position = end
        self._log.relist()
        return self.position < end

    def _row(
        self, file: "ReadMap", place: int, size: int, kind: StretchKind, reason: str
    ) -> TailRow:
        if kind is StretchKind.LOST:
            return _lost(place, size, reason)
        try:
            message = decode_record(file.view, place % self._log.file_size, size)
        except RecordError as error:
            return _lost(place, size, error.reason)
        problem = reason or None
        if problem is None and message.commitlog_offset != place:
            problem = f"its own position field is {message.commitlog_offset}"
        return TailRow(
            place,
            message.topic,
            message.queue_id,
            message.queue_offset,
            message.store_timestamp,
            size,
            message.tags,
            list(message.keys),
            problem,
            message.msg_id,
            len(message.stored_body),
            message.sys_flag,
            message.reconsume_times,
            message.born_timestamp,
            message.born_host,
            message.properties,
        )


def _lost(place: int, size: int, reason: str) -> TailRow:
    return TailRow(place, None, None, None, None, size, problem=reason or "no record")


def tail_from(cli: "Cli", view: "StoreView", text: str | None, *, whole: bool) -> LogTail:
    """The tail for ``--from``; by default from the start if ``whole``, else from the end.

    NotFound for a position outside of the log.
    """
    if text is None:
        text = "start" if whole else "end"
    if text in ("start", "end"):
        end = view.log_min_offset() if text == "start" else view.log_max_offset()
        return LogTail(view, end, cli.left_out)
    place = parse_digits(text)
    if place is not None:
        return LogTail(view, _record_holding(view, place), cli.left_out)
    from rmqctl.admin.store.checking import file_at_time

    timestamp = cli.parsed("--from", lambda value: _time(value, cli.now_ms, cli.zone), text)
    cli.warn_of_future("--from", timestamp, "no record is that recent")
    start = max(file_at_time(view, timestamp), view.log_min_offset())
    tail = LogTail(view, start, cli.left_out)
    tail.skip_before(timestamp)
    return tail


def _time(text: str, now_ms: int, zone: "tzinfo | None") -> int:
    try:
        return parse_time(text.removeprefix("@"), now_ms, zone)
    except ValueError as error:
        raise ValueError(f"{error}, and is not start, end or a log position") from None


def _record_holding(view: "StoreView", position: int) -> int:
    """Start of the record that contains a byte of the log; else the byte itself."""
    low, high = view.log_min_offset(), view.log_max_offset()
    if not low <= position <= high:
        raise NotFound(f"the log of {view.root} spans {low} to {high}; {position} is outside")
    if position == high:
        return position
    log = view.files.apart().log
    most = view.config.max_message_size + _MAX_HEADROOM
    found = RecordFinder(log, high, view.unit, most).containing(position)
    if found is not None:
        return found.start
    within = position % log.file_size
    return position - within + (log.file_size if within > BLANK_SIZE else within)
