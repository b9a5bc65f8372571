"""The line that is typed into: text, cursor, and the usual keys of an editor."""

from enum import Enum

from rmqctl.output.cells import cells_of, cut_begin

from .cells import safe
from .drawing import Line, Role, Span


class Asks(Enum):
    """What the prompt asks for."""

    NOTHING = 0
    WHERE_TO = 1
    TEXT = 2
    LETTERS = 3
    ANSWER = 4


class Prompt:
    """One line of text that is being typed."""

    def __init__(self, label: str, text: str = "") -> None:
        self.label = label
        self.text = text
        self.at = len(text)

    def insert(self, text: str) -> None:
        """Insert text that was typed or pasted; only its first line."""
        text = text.splitlines()[0] if text.splitlines() else ""
        self.text = self.text[: self.at] + text + self.text[self.at :]
        self.at += len(text)

    def key(self, name: str, character: str | None) -> bool:
        """Do what a key does; whether it was one of the editor's."""
        before, after = self.text[: self.at], self.text[self.at :]
        match name:
            case "left":
                self.at = max(0, self.at - 1)
            case "right":
                self.at = min(len(self.text), self.at + 1)
            case "home" | "ctrl+a":
                self.at = 0
            case "end" | "ctrl+e":
                self.at = len(self.text)
            case "backspace":
                self._replace(before[:-1], after)
            case "delete":
                self._replace(before, after[1:])
            case "ctrl+u":
                self._replace("", after)
            case "ctrl+k":
                self._replace(before, "")
            case "ctrl+w":
                kept = before.rstrip()
                self._replace(kept[: kept.rfind(" ") + 1], after)
            case _:
                if character is None or not character.isprintable():
                    return False
                self.insert(character)
        return True

    def _replace(self, before: str, after: str) -> None:
        self.text, self.at = before + after, len(before)

    def line(self, width: int, label: str | None = None) -> Line:
        """The line as it is shown, with the cursor as a cell of its own. The cursor is always in
        it: letters at the beginning are left out that the width has no room for.

        ``label`` stands in place of its own label.
        """
        label = safe(f" {self.label if label is None else label}")
        here = safe(self.text[self.at : self.at + 1] or " ")
        room = max(1, width - cells_of(label) - cells_of(here))
        return [
            Span(label, Role.KEY),
            Span(cut_begin(safe(self.text[: self.at]), room)),
            Span(here, Role.CURSOR),
            Span(safe(self.text[self.at + 1 :])),
        ]
