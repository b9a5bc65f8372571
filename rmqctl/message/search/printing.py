"""Output of a search: each hit, on request with the messages around it."""

from itertools import groupby
from typing import TYPE_CHECKING, Final

from rmqctl.admin.messages.search.hit_rows import HitRows
from rmqctl.output.row_block import RowBlock, RowText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqctl.cli.context import Cli
    from rmqctl.output.encoded_rows import Layout

_TOGETHER: Final = 500


def _is_row(item: object) -> bool:
    return type(item) is RowText


class HitPrinter:
    """Prints hits as they are found, by their log offsets.

    ``--limit`` counts rows. Where neighbours are shown it counts hits, each with all its rows: what
    lies beside a hit would fill a small limit each time, and no hit come. Sorted rows are counted.
    """

    def __init__(self, cli: "Cli", hit_rows: HitRows) -> None:
        self._hit_rows = hit_rows
        view = cli.view
        self._limited = view.limit is not None
        self._hits_left = view.limit if hit_rows.around and not view.sort else None
        self._stream = cli.row_stream(hit_rows.row_type, limited=self._hits_left is None)
        self._layout = None if self._limited or hit_rows.around else self._stream.layout()
        self.done_to = 0
        """Hits below this log offset are printed."""

    @property
    def full(self) -> bool:
        """Whether ``--limit`` is reached."""
        return self._stream.full or (self._hits_left is not None and self._hits_left <= 0)

    def write(self, offsets: "Sequence[int]") -> None:
        """Print hits, up to the limit."""
        step = 1 if self._limited else _TOGETHER
        for start in range(0, len(offsets), step):
            if self.full:
                return
            part = offsets[start : start + step]
            if self._layout is not None:
                self._write_rows(part, self._layout)
                self.done_to = part[-1] + 1
                continue
            before = self._stream.count
            self._stream.write(row for offset in part for row in self._hit_rows.rows(offset))
            if self._hits_left is not None and self._stream.count > before:
                self._hits_left -= 1
            self.done_to = part[-1] + 1

    def _write_rows(self, places: "Sequence[int]", layout: "Layout") -> None:
        """By columns; messages that have no row there as objects, in their place."""
        for rows in self._hit_rows.by_columns(layout, places):
            if type(rows) is RowBlock:
                self._stream.write_encoded(rows)
                continue
            for is_row, group in groupby(rows, key=_is_row):
                if is_row:
                    self._stream.write_encoded(RowBlock.of(list(group)))
                else:
                    self._stream.write(group)

    def flush(self) -> None:
        """Make all output so far visible to the reader."""
        self._stream.flush()

    def finish(self) -> None:
        """End the array or the table."""
        self._stream.finish()
