"""The one function that makes a cell: safe text of an exact width."""

import unicodedata
from typing import Final

from rmqctl.output.cells import cells_of, cut_end, cut_middle
from rmqctl.output.fields import Fit
from rmqctl.output.values import escape_controls

_MARKS: Final = 2
"""Most combining marks on a letter."""
_DIFFER: Final = (
    (0x115F, 0x11FF),  # Hangul vowels and finals: joined to the letter before, or not
    (0xD7B0, 0xD7FF),
    (0x2800, 0x2800),  # looks like a blank
    (0x3164, 0x3164),
    (0xFFA0, 0xFFA0),
    (0xFE00, 0xFE0F),  # select a form, which may be wider
    (0xE0100, 0xE01EF),
    (0x1F1E6, 0x1F1FF),  # two of them are a flag, or two letters
    (0x1F3FB, 0x1F3FF),  # tones of the emoji before, or emoji of their own
    (0x17A4, 0x17A4),
    (0x4DC0, 0x4DFF),  # one cell before Unicode 16, two since then
    (0x2630, 0x2637),
    (0x268A, 0x268F),
    (0x1D300, 0x1D376),
)
"""Characters with a width, or a look, on which terminals do not agree."""
_SHOWN: Final = frozenset({"Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl", "No"}) | frozenset(
    {"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Mn"}
)


class _Table(dict[int, str]):
    """What is shown for a character; filled as characters come."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        differs = any(first <= code <= last for first, last in _DIFFER)
        if differs or unicodedata.category(letter) not in _SHOWN:
            shown = _escaped(code)
        elif unicodedata.category(letter) == "Zs":
            shown = " " if code == 0x20 else _escaped(code)
        else:
            shown = letter
        self[code] = shown
        return shown


_TABLE: Final = _Table()


def _escaped(code: int) -> str:
    if code < 0x20:
        return escape_controls(chr(code))
    if code <= 0xFF or 0xDC80 <= code <= 0xDCFF:  # the latter are bytes that are not UTF-8
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def safe(text: str) -> str:
    """The text as every terminal shows it, in the same cells.

    Escaped are characters that command a terminal or turn its direction, that are not seen, and
    that terminals join or measure in different ways. A letter keeps its first combining marks.
    """
    if text.isascii():
        return text if text.isprintable() else escape_controls(text)
    text = text.translate(_TABLE)
    return text if text.isascii() else _with_few_marks(text)


def _with_few_marks(text: str) -> str:
    """Combining marks that follow a letter are kept, others are escaped."""
    if not any(unicodedata.category(letter) == "Mn" for letter in text):
        return text
    found, left = [], 0
    for letter in text:
        category = unicodedata.category(letter)
        if category != "Mn":
            left = _MARKS if category.startswith("L") else 0
            found.append(letter)
        elif left and not cells_of(letter):
            left -= 1
            found.append(letter)
        else:
            found.append(_escaped(ord(letter)))
    return "".join(found)


def fitted(text: str, width: int, fit: Fit = Fit.WHOLE, *, right: bool = False) -> str:
    """The text, safe, cut or filled with blanks to exactly this many cells."""
    width = max(0, width)
    text = safe(_near_ends(text, width))
    cells = cells_of(text)
    if cells > width:
        at_end = fit is Fit.END or fit is Fit.WRAP
        text = "" if not width else cut_end(text, width) if at_end else cut_middle(text, width)
        cells = cells_of(text)
    blanks = " " * (width - cells)
    return blanks + text if right else text + blanks


def _near_ends(text: str, width: int) -> str:
    """The text without the part in its middle that no cell of this width shows."""
    kept = (width + 1) * (_MARKS + 1)
    return text if len(text) <= 2 * kept else text[:kept] + text[-kept:]
