"""The characters that draw rules, bars and marks, and their ASCII forms.

Other modules name a shape here and never write the character itself. With ``--ascii`` the forms of
``_FORMS`` are written instead when a frame is painted.
"""

from collections.abc import Mapping
from typing import Final

from rmqctl.output.cells import ELLIPSIS

RULE: Final = "\u2500"
BESIDE: Final = "\u2502"
"""Between panes that stand beside each other."""
CORNERS: Final = "\u251c\u2524\u252c\u2534\u253c"
"""Tee to the right, left, down, up; crossing."""
PATH: Final = "\u203a"
ARROWS: Final = "\u2190\u2191\u2192\u2193"
"""Left, up, right, down."""
BAR: Final = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589\u2588"
"""A cell of a bar, from empty to full."""
COLUMN: Final = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
"""A cell of a trend, from empty to full."""
HEAT: Final = "\u00b7\u2591\u2592\u2593\u2588"
"""A cell of a heat map, from cold to hot."""
TARGET: Final = "\u25bc"
HERE: Final = "\u25cf"
DONE: Final = "\u2713"

_FORMS: Final[Mapping[str, str]] = {
    ELLIPSIS: "~",
    RULE: "-",
    BESIDE: "|",
    PATH: ">",
    TARGET: "v",
    HERE: "o",
    DONE: "+",
    **dict(zip(CORNERS, "+++++", strict=True)),
    **dict(zip(ARROWS, "<^>v", strict=True)),
    **dict(zip(BAR, " .--==##@", strict=True)),
    **dict(zip(COLUMN, " _.-=+*#@", strict=True)),
    **dict(zip(HEAT[:-1], ".:=#", strict=True)),
}
SHAPES: Final = frozenset(_FORMS) - {" "}
"""Every shape; each takes one cell."""
_ASCII: Final = str.maketrans(dict(_FORMS))


def in_ascii(text: str) -> str:
    """The text with its shapes in ASCII."""
    return text if text.isascii() else text.translate(_ASCII)
