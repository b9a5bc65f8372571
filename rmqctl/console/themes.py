"""Colors and weights of the roles. A color only repeats what a word or a shape says.

All colors of the palettes are of the cube of 256 that terminals share, so that a terminal with
more colors shows the same. Terminals with 16 colors choose these themselves; roles have a
palette of their own there.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from .drawing import Role


class Depth(IntEnum):
    """How many colors are written."""

    NONE = 0
    FEW = 16
    MANY = 256


class Look(NamedTuple):
    """How a role looks: numbers of colors, and weights; None is the terminal's own color."""

    fore: int | None
    back: int | None
    bold: bool = False
    underline: bool = False
    reverse: bool = False


def _palette(back: int, **roles: tuple[int, str] | tuple[int, str, int]) -> Mapping[Role, Look]:
    """Looks of all roles: color, weights and background, by default the one of the text."""
    found = {}
    for name, (fore, weights, *own) in roles.items():
        behind = own[0] if own else back
        found[Role(name)] = Look(fore, behind, "b" in weights, "u" in weights)
    return found


_MANY: Final[Mapping[str, Mapping[Role, Look]]] = {
    # The hues are those of Okabe and Ito. Words have a contrast of 7 to 1 at least.
    "dark": _palette(
        233,
        text=(254, ""),
        dim=(248, ""),
        head=(117, "b"),
        title=(231, "b"),
        bad=(216, "b"),
        warn=(221, ""),
        good=(79, ""),
        key=(117, "b"),
        cursor=(231, "b", 237),
        mark=(221, "b"),
        write=(233, "b", 216),
    ),
    "light": _palette(
        231,
        text=(234, ""),
        dim=(239, ""),
        head=(18, "b"),
        title=(16, "b"),
        bad=(88, "b"),
        warn=(53, ""),
        good=(22, ""),
        key=(18, "b"),
        cursor=(16, "b", 153),
        mark=(53, "b"),
        write=(231, "b", 88),
    ),
    "high-contrast": _palette(
        16,
        text=(231, ""),
        dim=(252, ""),
        head=(231, "bu"),
        title=(231, "b"),
        bad=(216, "b"),
        warn=(228, "b"),
        good=(86, "b"),
        key=(117, "b"),
        cursor=(16, "b", 231),
        mark=(228, "b"),
        write=(16, "b", 216),
    ),
}
_FEW: Final[Mapping[str, Mapping[Role, Look]]] = {
    "dark": _palette(
        0,
        text=(15, ""),
        dim=(7, ""),
        head=(14, "b"),
        title=(15, "b"),
        bad=(9, "b"),
        warn=(11, ""),
        good=(10, ""),
        key=(14, "b"),
        cursor=(0, "b", 14),
        mark=(11, "b"),
        write=(0, "b", 11),
    ),
    "light": _palette(
        15,
        text=(0, ""),
        dim=(0, ""),
        head=(4, "b"),
        title=(0, "b"),
        bad=(1, "b"),
        warn=(0, "u"),
        good=(0, ""),
        key=(4, "b"),
        cursor=(15, "b", 4),
        mark=(0, "b"),
        write=(15, "b", 1),
    ),
    "high-contrast": _palette(
        0,
        text=(15, ""),
        dim=(15, ""),
        head=(15, "bu"),
        title=(15, "b"),
        bad=(11, "bu"),
        warn=(11, "b"),
        good=(10, "b"),
        key=(14, "b"),
        cursor=(0, "b", 15),
        mark=(11, "b"),
        write=(0, "b", 11),
    ),
}
_NO_COLOR: Final[Mapping[Role, Look]] = {
    role: Look(None, None, "b" in weights, "u" in weights, "r" in weights)
    for role, weights in {
        Role.TEXT: "",
        Role.DIM: "",
        Role.HEAD: "u",
        Role.TITLE: "b",
        Role.BAD: "b",
        Role.WARN: "b",
        Role.GOOD: "",
        Role.KEY: "b",
        Role.CURSOR: "r",
        Role.MARK: "b",
        Role.WRITE: "br",
    }.items()
}
NAMES: Final = tuple(_MANY)


class Theme:
    """The look of each role."""

    def __init__(self, name: str, *, color: bool, depth: Depth = Depth.MANY) -> None:
        self.name = name
        self.depth = depth if color else Depth.NONE
        self.looks: Mapping[Role, Look] = _NO_COLOR
        if self.depth:
            self.looks = (_MANY if self.depth is Depth.MANY else _FEW)[name]
        self._sgr = {role: _sgr(look) for role, look in self.looks.items()}
        self._changes: dict[tuple[Role, Role], str] = {}

    def sgr(self, role: Role) -> str:
        """The sequence that a terminal needs to write in this role."""
        return self._sgr[role]

    def change(self, before: Role | None, role: Role) -> str:
        """The shortest sequence that a terminal needs to write in this role after another; empty if
        both look the same. None: it is unknown how the terminal writes."""
        if before is None:
            return self._sgr[role]
        found = self._changes.get((before, role))
        if found is None:
            more = _more(self.looks[before], self.looks[role])
            full = self._sgr[role]
            found = full if more is None or len(more) > len(full) else more
            self._changes[before, role] = found
        return found


def _sgr(look: Look) -> str:
    codes = _codes(look)
    return f"\x1b[0;{';'.join(codes)}m" if codes else "\x1b[m"


def _codes(look: Look) -> list[str]:
    """What differs from a terminal's plain text."""
    codes = [*(["1"] * look.bold), *(["4"] * look.underline), *(["7"] * look.reverse)]
    if look.fore is not None:
        codes.append(_code(look.fore, 30, 90, 38))
    if look.back is not None:
        codes.append(_code(look.back, 40, 100, 48))
    return codes


def _more(before: Look, look: Look) -> str | None:
    """The sequence that adds to a look what another one has; None if something is taken away."""
    old, new = _codes(before), _codes(look)
    weights = zip(before[2:], look[2:], strict=True)
    colors = zip(before[:2], look[:2], strict=True)
    if any(had and not has for had, has in weights):
        return None
    if any(had is not None and has is None for had, has in colors):
        return None
    codes = [code for code in new if code not in old]
    return f"\x1b[{';'.join(codes)}m" if codes else ""


def _code(color: int, first: int, bright: int, many: int) -> str:
    if color < 8:
        return str(first + color)
    return str(bright + color - 8) if color < 16 else f"{many};5;{color}"


_XTERM: Final = (
    *((0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205)),
    *((0, 205, 205), (229, 229, 229), (127, 127, 127), (255, 0, 0), (0, 255, 0)),
    *((255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)),
)
"""The first 16 colors as xterm shows them; other terminals have their own."""
_STEPS: Final = (0, 95, 135, 175, 215, 255)
"""The light of a color of the cube."""


def rgb(number: int) -> tuple[int, int, int]:
    """Red, green and blue of one of the 256 colors."""
    if number < 16:
        return _XTERM[number]
    if number >= 232:
        gray = 8 + 10 * (number - 232)
        return gray, gray, gray
    number -= 16
    return _STEPS[number // 36], _STEPS[number // 6 % 6], _STEPS[number % 6]


def depth_of(environ: Mapping[str, str]) -> Depth:
    """How many colors the terminal shows, by its name and what it says of itself."""
    term = environ.get("TERM", "")
    if term.startswith(("vt", "dumb")):
        return Depth.NONE
    if term in ("linux", "xterm-16color"):  # COLORTERM may be of another terminal
        return Depth.FEW
    many = ("256", "direct", "kitty", "alacritty", "ghostty", "foot", "wezterm")
    known = environ.get("COLORTERM", "") in ("truecolor", "24bit")
    return Depth.MANY if known or any(word in term for word in many) else Depth.FEW


def theme_for(environ: Mapping[str, str]) -> str:
    """The palette for a terminal: the light one if it says that its background is light."""
    back = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if back in ("7", "15") else "dark"
