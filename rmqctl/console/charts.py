"""Drawn numbers: columns over time, bars, and heat maps. Pure: from numbers to text.

None is a value that is not known, and is drawn as ``?``. NO_LOOK is a time at which nothing was
looked at, and is left blank.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from .looks.history import NO_LOOK
from .shapes import BAR, COLUMN, CORNERS, HEAT

UNKNOWN: Final = "?"
_COLUMNS: Final = COLUMN[1:]
_BARS: Final = BAR[1:]
_EMPTY: Final = HEAT[1]
_AXIS: Final = CORNERS[1]
HEAT_EDGES: Final = (1, 1_000, 10_000, 100_000)
"""From which lag on a cell of a heat map has the next shape."""

Values = Sequence[int | None]


def resampled(values: Values, cells: int) -> list[int | None]:
    """The values for so many cells, each the last one that was looked at in its time."""
    count = len(values)
    if not count:
        return [NO_LOOK] * cells
    found: list[int | None] = []
    for cell in range(cells):
        first = cell * count // cells
        end = max(first + 1, (cell + 1) * count // cells)
        looked = [value for value in values[first:end] if value != NO_LOOK]
        found.append(looked[-1] if looked else NO_LOOK)
    return found


def top_of(values: Iterable[int | None]) -> int:
    """The largest known value, 0 without any."""
    return max((value for value in values if value is not None and value >= 0), default=0)


def spark(values: Values, cells: int) -> str:
    """One line of columns, the highest for the largest value."""
    return columns(resampled(values, cells), 1)[0]


def columns(values: Values, height: int, top: int | None = None) -> list[str]:
    """So many lines of columns, a cell for each value; the lines from top to bottom."""
    most = top_of(values) if top is None else top
    lines = []
    for level in reversed(range(height)):
        line = []
        for value in values:
            if value is None:
                line.append(UNKNOWN if level == 0 else " ")
            elif value == NO_LOOK:
                line.append(" ")
            else:
                line.append(_cell(value, most, height, level))
        lines.append("".join(line))
    return lines


def _cell(value: int, most: int, height: int, level: int) -> str:
    """A cell of a column: what of it lies between ``level`` and the one above it."""
    steps = height * len(_COLUMNS)
    filled = 0 if not most else -(-min(value, most) * steps // most)
    filled = max(1, filled)  # zero is drawn, too: it is known
    within = filled - level * len(_COLUMNS)
    return " " if within <= 0 else _COLUMNS[min(within, len(_COLUMNS)) - 1]


def trend(values: Values, width: int, height: int) -> list[str]:
    """Columns over time with an axis at the left, exactly ``width`` cells wide."""
    label_cells = 6
    cells = max(1, width - label_cells - 1)
    shown = resampled(values, cells)
    top = _nice(top_of(shown))
    lines = []
    before = ""
    for n, line in enumerate(columns(shown, height, top)):
        label = short(top * (height - n) // height) if n < height - 1 or height == 1 else "0"
        before, label = label, "" if label == before else label
        lines.append(f"{label:>{label_cells - 1}} {_AXIS}{line}"[:width])
    return lines


def _nice(value: int) -> int:
    """The next number of at most two digits that are not 0, so that an axis has short labels."""
    if value < 10:
        return max(1, value)
    step = 1
    while value > 100 * step:
        step *= 10
    return -(-value // step) * step


def short(number: int | float | None) -> str:
    """A number in at most five cells, such as ``812k``."""
    if number is None:
        return UNKNOWN
    for unit in ("", "k", "M", "G", "T"):
        if abs(number) < 1000:
            if unit and abs(number) < 10 and number != int(number):
                return f"{number:.1f}{unit}"
            return f"{number:.0f}{unit}"
        number = number / 1000
    return f"{number:.0f}P"


def bar(part: float | None, cells: int, *, filled_up: bool = False) -> str:
    """A bar for a part from 0 to 1, at most so many cells; ``filled_up``: exactly so many."""
    if part is None:
        return UNKNOWN
    eighths = round(max(0.0, min(1.0, part)) * cells * len(_BARS))
    if part > 0:
        eighths = max(1, eighths)
    whole, rest = divmod(eighths, len(_BARS))
    text = _BARS[-1] * whole + (_BARS[rest - 1] if rest else "")
    return text + _EMPTY * (cells - len(text)) if filled_up else text


def heat(lag: int | None) -> str:
    """The shape of a lag."""
    if lag is None:
        return UNKNOWN
    return HEAT[sum(lag >= edge for edge in HEAT_EDGES)]


def span(ids: Sequence[int]) -> str:
    """Ascending numbers as text: ``0-15``, or ``0-3,7``."""
    runs: list[list[int]] = []
    for number in ids:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
