"""Colors and weights of the roles. Every role differs from text by weight, too, where it counts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .drawing import Role

if TYPE_CHECKING:
    from rich.style import Style

_PALETTES: Final[Mapping[str, Mapping[Role, str]]] = {
    # Words have a contrast of 7 to 1 at least; the hues are those of Okabe and Ito.
    "dark": {
        Role.TEXT: "#e4e4e4 on #121212",
        Role.DIM: "#a8a8a8 on #121212",
        Role.HEAD: "bold #7cc7f2 on #121212",
        Role.TITLE: "bold #ffffff on #121212",
        Role.BAD: "bold #ff9d76 on #121212",
        Role.WARN: "#f0c24a on #121212",
        Role.GOOD: "#5fd7af on #121212",
        Role.KEY: "bold #7cc7f2 on #121212",
        Role.CURSOR: "bold #ffffff on #303a44",
        Role.MARK: "bold #f0c24a on #121212",
        Role.WRITE: "bold #121212 on #ff9d76",
    },
    "light": {
        Role.TEXT: "#1a1a1a on #ffffff",
        Role.DIM: "#4d4d4d on #ffffff",
        Role.HEAD: "bold #004a7c on #ffffff",
        Role.TITLE: "bold #000000 on #ffffff",
        Role.BAD: "bold #8a2c00 on #ffffff",
        Role.WARN: "#654700 on #ffffff",
        Role.GOOD: "#00573d on #ffffff",
        Role.KEY: "bold #004a7c on #ffffff",
        Role.CURSOR: "bold #000000 on #cfe2f0",
        Role.MARK: "bold #654700 on #ffffff",
        Role.WRITE: "bold #ffffff on #8a2c00",
    },
    "high-contrast": {
        Role.TEXT: "#ffffff on #000000",
        Role.DIM: "#d0d0d0 on #000000",
        Role.HEAD: "bold underline #ffffff on #000000",
        Role.TITLE: "bold #ffffff on #000000",
        Role.BAD: "bold #ffb08a on #000000",
        Role.WARN: "bold #ffe070 on #000000",
        Role.GOOD: "bold #70ffd0 on #000000",
        Role.KEY: "bold #90d8ff on #000000",
        Role.CURSOR: "bold #000000 on #ffffff",
        Role.MARK: "bold #ffe070 on #000000",
        Role.WRITE: "bold #000000 on #ffb08a",
    },
}
_NO_COLOR: Final[Mapping[Role, str]] = {
    Role.TEXT: "none",
    Role.DIM: "none",
    Role.HEAD: "underline",
    Role.TITLE: "bold",
    Role.BAD: "bold",
    Role.WARN: "bold",
    Role.GOOD: "none",
    Role.KEY: "bold",
    Role.CURSOR: "reverse",
    Role.MARK: "bold",
    Role.WRITE: "reverse bold",
}
NAMES: Final = tuple(_PALETTES)


class Theme:
    """The style of each role."""

    def __init__(self, name: str, *, color: bool) -> None:
        from rich.style import Style

        self.name = name
        self.color = color
        texts = _PALETTES[name] if color else _NO_COLOR
        self._styles = {role: Style.parse(text) for role, text in texts.items()}

    def style(self, role: Role) -> "Style":
        """The style of a role."""
        return self._styles[role]

    @property
    def background(self) -> str:
        """The background of what no line covers, as Textual's CSS has it."""
        if not self.color:
            return "ansi_default"
        return _PALETTES[self.name][Role.TEXT].rpartition(" on ")[2]
