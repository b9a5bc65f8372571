"""Frames are the cells that changed, and the terminal shows what was drawn."""

import unicodedata

import pyte
import pytest
from hypothesis import given, settings, strategies as st

from rmqctl.console.cells import safe
from rmqctl.console.drawing import Role, Span, cut_line
from rmqctl.console.painting import Painter
from rmqctl.console.shapes import SHAPES, in_ascii as shapes_in_ascii
from rmqctl.console.themes import Theme
from rmqctl.output.cells import cells_of
from tests.support.hostile_text import hostile_text

WIDTH, HEIGHT = 24, 4

spans = st.builds(
    Span, (st.text(max_size=8) | hostile_text()).map(safe), st.sampled_from(list(Role))
)
shapes = st.builds(Span, st.text(st.sampled_from(sorted(SHAPES)), max_size=9))
frames = st.lists(
    st.lists(spans | shapes, max_size=5).map(lambda line: cut_line(line, WIDTH)),
    min_size=HEIGHT,
    max_size=HEIGHT,
)


def thai(text):
    """Whether pyte cannot show it: it ends at a mark without a combining class."""
    return any(unicodedata.category(c) == "Mn" and not unicodedata.combining(c) for c in text)


def text_of(line):
    return "".join(span.text for span in line)


@settings(deadline=None)
@given(st.lists(frames, min_size=1, max_size=4), st.booleans())
@pytest.mark.slow
def test_a_terminal_shows_the_lines_of_each_frame(shown, in_ascii):
    painter = Painter(Theme("dark", color=True), ascii_only=in_ascii)
    screen = pyte.Screen(WIDTH, HEIGHT)
    screen.reset_mode(7, private=True)
    stream = pyte.Stream(screen)
    for lines in shown:
        if any(thai(text_of(line)) for line in lines):
            continue
        stream.feed(painter.frame(lines, WIDTH))
        for y, line in enumerate(lines):
            expected = pyte.Screen(WIDTH, 1)
            expected.reset_mode(7, private=True)
            text = text_of(line)
            if in_ascii:
                text = shapes_in_ascii(text)
                assert not set(text) & SHAPES
            pyte.Stream(expected).feed(text)
            assert screen.display[y] == expected.display[0]
        assert painter.frame(lines, WIDTH) == ""


def test_a_text_that_was_not_made_safe_is_escaped_all_the_same():
    painter = Painter(Theme("dark", color=False))
    assert painter.frame([[Span("a\x1b]0;x\x07\u202e")]], 24).startswith(
        "\x1b[1;1H\x1b[ma\\x1b]0;x\\x07\\u202e "
    )


def test_only_changed_cells_are_written():
    painter = Painter(Theme("dark", color=True))
    before = [[Span("12:00:01 " + "x" * 60, Role.DIM), Span("ab", Role.BAD)]]
    after = [[Span("12:00:02 " + "x" * 60, Role.DIM), Span("ac", Role.BAD)]]
    width = sum(cells_of(span.text) for span in before[0])
    painter.frame(before, width)
    found = painter.frame(after, width)
    assert found.startswith("\x1b[1;8H\x1b[0;38;5;248;48;5;233m2\x1b[1;71H")
    assert found.endswith("mc")
    assert len(found) < 70


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\u4e00\u4e8c\u4e09", "x\u4e8c\u4e09"),
        ("x\u4e8c\u4e09", "\u4e00\u4e8c\u4e09"),
        ("\u4e00\u4e8c\u4e09", "\u4e8c\u4e8cx "),
        (" \u4e00x\u4e8c", "\u4e00x\u4e8c "),
    ],
)
def test_wide_letters_are_replaced_whole(before, after):
    painter, screen = Painter(Theme("dark", color=True)), pyte.Screen(10, 1)
    stream = pyte.Stream(screen)
    for text in (before, after):
        line = cut_line([Span(text)], 10)
        stream.feed(painter.frame([line], 10))
        assert screen.display[0].rstrip() == text.rstrip()
