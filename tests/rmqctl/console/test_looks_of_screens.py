"""Screens look as in the pictures of this folder: every letter, at its place, in its colors.

After a change that is meant, `make pictures` makes them anew; look at what git says has changed.
"""

import re
import shutil
import time
import xml.etree.ElementTree as ET
from difflib import unified_diff
from typing import Any, NamedTuple

import pytest

from tests.rmqctl.console.test_themes import _SEEN, contrast, seen
from tests.support.console_pictures import (
    SCREENS,
    WAYS,
    console,
    file_of,
    names,
    picture,
    shop,
    show,
)
from tests.support.svg_text import lines_of

_PATIENCE_S = 30
_SVG = "{http://www.w3.org/2000/svg}"
_USUAL = ("80x24-dark", "80x24-light", "140x40-no-color")
STATES = ("bad", "warn", "good")


@pytest.fixture(scope="module")
def made():
    """The store of the pictures."""
    if shutil.which("cc") is None:
        pytest.skip("needs cc on PATH: the pictures have a clock that stands still")
    with shop() as found:
        yield found


def difference(expected, found):
    """What differs, in words: the lines of the screen, else the colors of their pieces."""
    one, two = lines_of(expected), lines_of(found)
    if one == two:
        one, two = expected.splitlines(), found.splitlines()
    return "\n".join(unified_diff(one, two, "expected", "found", lineterm="", n=1))


@pytest.mark.feature(164)
@pytest.mark.parametrize(
    "way", [pytest.param(n, marks=() if n in _USUAL else pytest.mark.long) for n in WAYS]
)
@pytest.mark.slow
def test_screens_look_as_in_their_pictures(made, way):
    with console(made, WAYS[way]) as shown:
        for screen in WAYS[way].screens:
            show(shown, SCREENS[screen])
            expected = file_of(way, screen).read_text("utf-8")
            end = time.monotonic() + _PATIENCE_S
            while (found := picture(shown, made)) != expected:
                assert time.monotonic() < end, f"{screen}:\n{difference(expected, found)}"


def test_a_difference_is_readable():
    expected = file_of("80x24-dark", "groups").read_text("utf-8")
    found = expected.replace("mailer", "nailer")
    assert found != expected
    text = difference(expected, found)
    assert any(line.startswith("-") and "mailer" in line for line in text.splitlines())
    assert any(line.startswith("+") and "nailer" in line for line in text.splitlines())
    colored = expected.replace(".head{fill:#87d7ff", ".head{fill:#ff0000")
    assert colored != expected
    assert "#ff0000" in difference(expected, colored)


def test_every_picture_is_of_a_screen():
    assert {path.name for path in file_of("", "").parent.iterdir()} == {
        file_of(*name).name for name in names()
    }


def color(text):
    return tuple(int(text[at : at + 2], 16) for at in (1, 3, 5))


class Piece(NamedTuple):
    """A piece of a picture."""

    text: str
    role: str
    fore: tuple[int, ...]
    back: tuple[int, ...]


def pieces(way, screen):
    """The pieces of a picture with their colors."""
    root: Any = ET.fromstring(file_of(way, screen).read_text("utf-8"))
    fills = dict(re.findall(r"\.(\w+)\{fill:(#\w+)", root.findtext(f"{_SVG}style")))
    paper, *boxes = root.iter(f"{_SVG}rect")
    for text in root.iter(f"{_SVG}text"):
        x, y = int(text.get("x")), int(text.get("y"))
        below = [box for box in boxes if holds(box, x, y)] or [paper]
        role = text.get("class")
        yield Piece(text.text.strip(), role, color(fills[role]), color(below[0].get("fill")))


def holds(box, x, y):
    left, top, width, height = (int(box.get(name)) for name in ("x", "y", "width", "height"))
    return left <= x < left + width and top <= y < top + height


@pytest.mark.parametrize(("way", "screen"), names())
def test_each_word_is_readable_to_all_eyes(way, screen):
    for piece in pieces(way, screen):
        for eyes in _SEEN:
            found = contrast(seen(piece.fore, eyes), seen(piece.back, eyes))
            assert found >= 7, (piece.text, eyes, round(found, 2))


@pytest.mark.parametrize(("way", "screen"), names())
def test_a_state_is_a_word_or_a_shape(way, screen):
    # Without colors, what is drawn distinguishes the states.
    by_text: dict[str, set[str]] = {}
    for piece in pieces(way, screen):
        if piece.role in STATES:
            assert piece.text
            by_text.setdefault(piece.text, set()).add(piece.role)
    assert all(len(roles) == 1 for roles in by_text.values()), by_text


def test_without_colors_there_is_only_ink_and_paper():
    for way, screen in names():
        if "no-color" in way:
            text = file_of(way, screen).read_text("utf-8")
            assert set(re.findall(r"#[0-9a-f]{6}", text)) == {"#000000", "#ffffff"}
