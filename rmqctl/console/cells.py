"""The one function that makes a cell: safe text of an exact width."""

from rmqctl.output.cells import cells_of, cut_end, cut_middle
from rmqctl.output.fields import Fit
from rmqctl.output.values import escape_controls


def safe(text: str) -> str:
    """The text without characters that command a terminal or turn its direction."""
    return escape_controls(text)


def fitted(text: str, width: int, fit: Fit = Fit.WHOLE, *, right: bool = False) -> str:
    """The text, safe, cut or filled with blanks to exactly this many cells."""
    text = safe(text)
    cells = cells_of(text)
    if cells > width:
        text = (
            cut_end(text, width) if fit is Fit.END or fit is Fit.WRAP else cut_middle(text, width)
        )
        cells = cells_of(text)
    blanks = " " * (width - cells)
    return blanks + text if right else text + blanks
