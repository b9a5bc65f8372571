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


def styles_of(screen, y):
    """The colors and weights of the cells of a line."""
    row = screen.buffer[y]
    return [row[x][1:] for x in range(screen.columns)]


@settings(deadline=None)
@given(
    st.lists(frames, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from(("dark", "high-contrast")),
    st.booleans(),
)
@pytest.mark.slow
def test_a_terminal_shows_the_lines_of_each_frame(shown, in_ascii, name, color):
    theme = Theme(name, color=color)
    painter = Painter(theme, ascii_only=in_ascii)
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
                assert not set(shapes_in_ascii(text)) & SHAPES
            for span in line:
                text = shapes_in_ascii(span.text) if in_ascii else span.text
                pyte.Stream(expected).feed(theme.sgr(span.role) + text)
            assert screen.display[y] == expected.display[0]
            assert styles_of(screen, y) == styles_of(expected, 0)
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
    assert found == "\x1b[1;71Hc\x1b[8G\x1b[0;38;5;248;48;5;233m2"


def clock(seconds, ages):
    """Lines with a clock, and a table of which the cursor is on the first row."""
    lines = [[Span("store".ljust(30)), Span(f"12:00:{seconds:02}", Role.DIM)]]
    for row, age in enumerate(ages):
        role = Role.TEXT if row else Role.CURSOR
        lines.append([Span(f"group-{row}".ljust(32), role), Span(age, role)])
    return lines


def test_a_frame_goes_on_in_the_style_of_the_one_before():
    painter = Painter(Theme("dark", color=True))
    painter.frame(clock(1, ["1h3m"] * 9), 38)
    dim = Theme("dark", color=True).sgr(Role.DIM)
    assert painter.frame(clock(2, ["1h3m"] * 9), 38) == f"\x1b[1;38H{dim}2"
    assert painter.frame(clock(3, ["1h3m"] * 9), 38) == "\x1b[1;38H3"


def test_a_column_that_changes_costs_a_short_move_and_its_digits_each():
    painter = Painter(Theme("dark", color=True))
    painter.frame(clock(1, ["1m1s"] * 21), 38)
    found = painter.frame(clock(1, ["1m3s"] * 21), 38)
    assert len(found) <= 20 * 7 + 40, found


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
