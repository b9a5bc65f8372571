"""``lag watch``: the display of repeated readings on a terminal, and their loop."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final

from rmqctl.admin.lag.watcher import Left, Watcher, check_known, left
from rmqctl.cli.gc_tuning import no_search_for_cycles
from rmqctl.cli.signals import Terminated, TimeLimit
from rmqctl.output.cells import cells_of
from rmqctl.output.last_line import LAST_LINE, nothing_drawn
from rmqctl.output.render import RowStream
from rmqctl.output.view import Format

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_COLORS: Final = re.compile(r"\x1b\[[\d;]*m")


class Screen:
    """Shows the rows of each reading: in place on a terminal, appended elsewhere."""

    def __init__(self, cli: "Cli", row_type: type) -> None:
        self._out = cli.out
        self._view = cli.view
        self._row_type = row_type
        table = self._view.format in (Format.TABLE, Format.WIDE)
        in_place = table and self._view.terminal and cli.environ.get("TERM") != "dumb"
        self._lines: int | None = 0 if in_place else None
        """Number of rows shown in place; None: not in place."""
        # A table's widths, and an order, need all rows: then each reading is printed separately.
        alone = table or bool(self._view.sort)
        self._stream = None if alone else self._new_stream(headers=True)
        self._heads = table or self._view.format is Format.MD
        self._begun = False

    def show(self, rows: Sequence[Any]) -> None:
        """Show the rows of a reading."""
        if self._stream is not None:
            self._stream.write(rows)
            self._stream.flush()
        elif self._lines is None:
            stream = self._new_stream(headers=self._heads or not self._begun)
            stream.write(rows)
            stream.finish()
        else:
            self._redraw(self._lines, rows)
        self._begun = True
        self._out.flush()

    @property
    def full(self) -> bool:
        """Whether ``--limit`` is reached; where it counts the rows of each reading, only 0 is."""
        if self._stream is None:
            return self._view.limit == 0
        return self._stream.full

    def finish(self) -> None:
        """End the output."""
        if self._stream is not None:
            self._stream.finish()

    @contextmanager
    def below_messages(self) -> Iterator[None]:
        """Within it, a message of the program stays above the table that is shown in place."""
        if self._lines is not None:
            LAST_LINE.clear_drawn = self._clear
        try:
            yield
        finally:
            LAST_LINE.clear_drawn = nothing_drawn

    def _clear(self) -> None:
        """Clear the table; the next one is drawn where the cursor is then."""
        if self._lines:
            before, self._lines = self._lines, 0
            self._out.write(f"\x1b[{before}F\x1b[J")
            self._out.flush()

    def _new_stream(self, *, headers: bool) -> RowStream:
        view = self._view._replace(headers=self._view.headers and headers)
        if not headers:  # the columns that are left out were named with the header
            view = view._replace(remark=None)
        return RowStream(self._row_type, view, self._out)

    def _redraw(self, before: int, rows: Sequence[Any]) -> None:
        text = _Text()
        stream = RowStream(self._row_type, self._view._replace(remark=None), text)
        stream.write(rows)
        stream.finish()
        lines = text.text.splitlines()
        columns, height = get_terminal_size()
        taken = [_rows_taken(line, columns) for line in lines]
        room = max(1, height - 1)
        if sum(taken) > room:
            kept = next(n for n in range(len(lines), -1, -1) if sum(taken[:n]) < room)
            lines = [*lines[:kept], f"... {len(lines) - kept} more"]
            taken = [*taken[:kept], 1]
        if before:
            # Line by line, so that the screen does not flicker; the rest is cleared.
            body = "".join(f"{line}\x1b[K\n" for line in lines)
            self._out.write(f"\x1b[{before}F{body}\x1b[J")
        else:
            self._out.write("".join(f"{line}\n" for line in lines))
        self._lines = sum(taken)


def _rows_taken(line: str, columns: int) -> int:
    """Rows of a terminal that a line takes, as a long line wraps."""
    return max(1, -(-cells_of(_COLORS.sub("", line)) // columns))


class _Text:
    """Collects printed text."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str, /) -> None:
        """Add text."""
        self.text += text

    def flush(self) -> None:
        """Nothing is buffered."""


def watch(
    watcher: Watcher,
    screen: Screen,
    clock: Callable[[], int],
    pauses: Iterator[object],
    *,
    with_rates: bool,
    until_drained: bool,
) -> None:
    """Read, show, pause, until ``pauses`` end or everything is drained.

    CliError (3) if no message is known to be left, but some values are unknown.
    """
    with screen.below_messages():
        try:
            while True:
                with no_search_for_cycles():
                    seen = watcher.look(clock())
                screen.show(watcher.rows(seen, with_rates=with_rates))
                if (
                    screen.full
                    or (until_drained and left(seen) is not Left.SOME)
                    or next(pauses, None) is None
                ):
                    break
        except (KeyboardInterrupt, TimeLimit, Terminated):
            screen.finish()
            raise
    screen.finish()
    if until_drained:
        check_known(seen)
