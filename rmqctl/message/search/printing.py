"""Output of a search: each hit, on request with the messages around it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rmqctl.admin.messages.search.rows import NearRow
from rmqctl.output.message_rows import MessageRow, message_row
from storage.format.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqctl.admin.message_filter import Predicate
    from rmqctl.cli.context import Cli
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


_TOGETHER: Final = 500


class HitPrinter:
    """Prints hits as they are found, by their log offsets."""

    def __init__(self, cli: "Cli", view: "StoreView", matches: "Predicate", around: int) -> None:
        self._view = view
        self._matches = matches
        self._around = around
        self._limited = cli.view.limit is not None
        self._stream = cli.row_stream(NearRow if around else MessageRow)
        self._printed: dict[tuple[str, int], int] = {}
        self.done_to = 0
        """Hits below this log offset are printed."""
        self.unreadable: set[int] = set()
        """Log offsets of hits that can no longer be read, or whose bodies cannot be unpacked."""

    @property
    def full(self) -> bool:
        """Whether ``--limit`` is reached."""
        return self._stream.full

    def write(self, offsets: "Sequence[int]") -> None:
        """Print hits, up to the limit."""
        step = 1 if self._limited else _TOGETHER
        for start in range(0, len(offsets), step):
            if self.full:
                return
            part = offsets[start : start + step]
            self._stream.write(row for offset in part for row in self._rows(offset))
            self.done_to = part[-1] + 1

    def flush(self) -> None:
        """Make all output so far visible to the reader."""
        self._stream.flush()

    def finish(self) -> None:
        """End the array or the table."""
        self._stream.finish()

    def _rows(self, offset: int) -> Iterator[Any]:
        message = self._view.look_message_by_offset(offset)
        if message is None:
            self.unreadable.add(offset)
        elif self._around:
            yield from self._near(message)
        else:
            try:
                yield message_row(message)
            except BodyError:
                self.unreadable.add(offset)

    def _near(self, hit: "MessageExt") -> Iterator[Any]:
        """The hit with its neighbours in its queue; no message is printed twice."""
        queue = (hit.topic, hit.queue_id)
        low, high = self._view.queue_bounds(*queue)
        first = max(low, hit.queue_offset - self._around, self._printed.get(queue, 0))
        last = min(high - 1, hit.queue_offset + self._around)
        for queue_offset in range(first, last + 1):
            if queue_offset == hit.queue_offset:
                try:
                    yield NearRow(True, *message_row(hit))
                except BodyError:
                    self.unreadable.add(hit.commitlog_offset)
            else:
                yield from self._neighbour(queue, queue_offset)
        self._printed[queue] = last + 1

    def _neighbour(self, queue: tuple[str, int], queue_offset: int) -> Iterator[Any]:
        unit = self._view.unit(*queue, queue_offset)
        message = unit and self._view.message_of_unit(*queue, queue_offset, unit)
        if message:
            try:
                yield NearRow(self._matches(message), *message_row(message))
            except BodyError:
                self.unreadable.add(message.commitlog_offset)
