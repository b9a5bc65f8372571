"""The columns that a table shows on a terminal, and their widths.

Pure numbers: nothing here knows texts. Columns are taken by rank while they fit; then the room
that is left is given to names, ids and texts, in this order.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rmqctl.output.fields import Fit, Rank

GAP: Final = 2
"""Blanks between two columns."""
_LEAST: Final = {Fit.MIDDLE: 16, Fit.END: 16, Fit.WRAP: 20}
"""Least widths of columns whose values may be shortened or wrapped."""
_NAME_SHARE: Final = 0.45
"""Share of the terminal above which a name does not widen its column."""
_TEXT_SHARE: Final = 0.25
"""Share of the terminal that texts have before a column of a lower rank than MAIN is added."""


def longest_usual_name(room: int) -> int:
    """Width up to which a column of names shows all names; longer ones may have own lines."""
    return int(room * _NAME_SHARE)


class Column(NamedTuple):
    """What the layout must know of a column."""

    title: int
    """Width of the heading."""
    value: int
    """Width of the widest value."""
    rank: Rank
    fit: Fit
    usual: int | None = None
    """Of names: width of the widest one up to :func:`longest_usual_name`; None for others."""

    @property
    def whole(self) -> int:
        """The width that shows every value."""
        return max(self.title, self.value)

    @property
    def least(self) -> int:
        """The width that the column needs to be shown."""
        if self.usual is not None:
            return max(self.title, self.usual)
        if self.fit is Fit.WHOLE:
            return self.whole
        return min(self.whole, max(self.title, _LEAST[self.fit]))

    def comfortable(self, room: int) -> int:
        """The width that it needs before a less important column is shown."""
        if self.usual is not None or self.fit is Fit.WHOLE:
            return self.least
        return max(self.least, min(self.whole, int(room * _TEXT_SHARE)))


def lay_out(columns: Sequence[Column], room: int, *, keep_all: bool = False) -> list[int | None]:
    """The width of each column; None for one that is left out.

    ``keep_all``: no column is left out; the table may then be wider than the room.
    """
    shown = _chosen(columns, room) if not keep_all else list(range(len(columns)))
    widths = {i: columns[i].least for i in shown}
    excess = sum(widths.values()) + GAP * (len(shown) - 1) - room
    _narrow_names(columns, widths, excess)
    spare = room - sum(widths.values()) - GAP * (len(shown) - 1)
    for i in shown:  # a part of the room does not help a name
        need = columns[i].whole - widths[i]
        if columns[i].usual is not None and need <= spare:
            widths[i] += need
            spare -= need
    for fits in ((Fit.MIDDLE,), (Fit.END, Fit.WRAP)):
        spare = _widen(columns, widths, [i for i in shown if columns[i].fit in fits], spare)
    return [widths.get(i) for i in range(len(columns))]


def _chosen(columns: Sequence[Column], room: int) -> list[int]:
    """The columns to show, the first one always; by rank, those of one rank from the left.

    The names of the row are always shown, as they may have lines of their own.
    """
    shown: list[int] = []
    for i in sorted(range(len(columns)), key=lambda i: (i > 0, columns[i].rank, i)):
        wanted = [*shown, i]
        if columns[i].rank is Rank.KEY:  # a name may have a line of its own
            needs = [columns[j].title if columns[j].usual else columns[j].least for j in wanted]
        elif columns[i].rank is Rank.MAIN:
            needs = [columns[j].least for j in wanted]
        else:
            needs = [columns[j].comfortable(room) for j in wanted]
        names_row = columns[i].rank is Rank.KEY and columns[i].usual is not None
        if not shown or names_row or sum(needs) + GAP * (len(wanted) - 1) <= room:
            shown = wanted
    return sorted(shown)


def _narrow_names(columns: Sequence[Column], widths: dict[int, int], excess: int) -> None:
    """Narrow the columns of names, the widest first, down to their headings."""
    while excess > 0:
        names = [i for i, width in widths.items() if columns[i].usual and width > columns[i].title]
        if not names:
            return
        widest = max(names, key=lambda i: widths[i])
        others = [widths[i] - 1 for i in names if i != widest]
        step = min(excess, widths[widest] - max([columns[widest].title, *others]))
        widths[widest] -= step
        excess -= step


def _widen(
    columns: Sequence[Column], widths: dict[int, int], chosen: Sequence[int], spare: int
) -> int:
    """Widen columns to show their values whole, in equal parts; returns the room that is left."""
    needs = sorted((columns[i].whole - widths[i], i) for i in chosen)
    for place, (need, i) in enumerate(needs):
        step = min(need, max(0, spare) // (len(needs) - place))
        widths[i] += step
        spare -= step
    return spare
