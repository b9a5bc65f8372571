"""Widths of text on a terminal, and text that is shortened or wrapped to a width."""

from typing import Final

ELLIPSIS: Final = "\u2026"


def cells_of(text: str) -> int:
    """Width of the text on a terminal: wide letters take two cells, combining ones none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # lazy: most tables are ASCII

    return cell_len(text)


def cut_end(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if cells_of(text) <= width else _begin(text, width - 1) + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """The text, or its two ends and an ellipsis between them."""
    if cells_of(text) <= width:
        return text
    right = (width - 1) // 2
    return _begin(text, width - 1 - right) + ELLIPSIS + _end(text, right)


def cut_begin(text: str, width: int) -> str:
    """The text, or an ellipsis and its end."""
    return text if cells_of(text) <= width else ELLIPSIS + _end(text, width - 1)


def wrapped(text: str, width: int) -> list[str]:
    """The text on lines of a width, broken at blanks; a word that is too long is broken, too."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cells_of(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        # By pieces: the width of all that is left would take a time that grows with its square.
        while word and len(piece := _begin(word, width) or word[0]) < len(word):
            lines.append(piece)
            word = word[len(piece) :]
        line = word
    return [*lines, line] if line or not lines else lines


def _begin(text: str, width: int) -> str:
    """As much of the text's beginning as fits."""
    if text.isascii():
        return text[: max(0, width)]
    used = 0
    for place, letter in enumerate(text):
        used += cells_of(letter)
        if used > width:
            return text[:place]
    return text


def _end(text: str, width: int) -> str:
    """As much of the text's end as fits; it does not begin with a combining letter."""
    if text.isascii():
        return text[len(text) - max(0, width) :]
    used, first = 0, len(text)
    for place in range(len(text) - 1, -1, -1):
        cells = cells_of(text[place])
        used += cells
        if used > width:
            break
        if cells:
            first = place
    return text[first:]
