"""Every palette is readable, and no state is told by a color alone."""

from itertools import combinations

import pytest

from rmqctl.console.drawing import Role
from rmqctl.console.shapes import SHAPES, in_ascii
from rmqctl.console.themes import NAMES, Depth, Theme, depth_of, theme_for
from rmqctl.output.cells import cells_of

_XTERM = (
    *((0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205)),
    *((0, 205, 205), (229, 229, 229), (127, 127, 127), (255, 0, 0), (0, 255, 0)),
    *((255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)),
)
"""The 16 colors of xterm."""
_LINUX = (
    *((0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0), (0, 0, 170), (170, 0, 170)),
    *((0, 170, 170), (170, 170, 170), (85, 85, 85), (255, 85, 85), (85, 255, 85)),
    *((255, 255, 85), (85, 85, 255), (255, 85, 255), (85, 255, 255), (255, 255, 255)),
)
"""Those of the console of Linux, which are VGA's."""
_STEPS = (0, 95, 135, 175, 215, 255)
STATES = (Role.BAD, Role.WARN, Role.GOOD)


def rgb(number, few=_XTERM):
    """The color with a number, as terminals show it."""
    if number < 16:
        return few[number]
    if number >= 232:
        return (8 + 10 * (number - 232),) * 3
    number -= 16
    return _STEPS[number // 36], _STEPS[number // 6 % 6], _STEPS[number % 6]


def linear(color):
    """The color's parts of light."""
    parts = [part / 255 for part in color]
    return [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]


def luminance(light):
    """WCAG's relative luminance."""
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), light, strict=True))


def contrast(one, two):
    """WCAG's contrast of two lights."""
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


# Machado, Oliveira and Fernandes 2009, severity 1, on linear light.
_SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def seen(color, eyes):
    """The light of a color for these eyes."""
    light = linear(color)
    return [
        max(0.0, min(1.0, sum(w * part for w, part in zip(row, light, strict=True))))
        for row in _SEEN[eyes]
    ]


@pytest.mark.feature(163)
@pytest.mark.parametrize("eyes", _SEEN)
@pytest.mark.parametrize("name", NAMES)
def test_words_have_a_contrast_of_seven(name, eyes):
    for role, look in Theme(name, color=True).looks.items():
        found = contrast(seen(rgb(look.fore), eyes), seen(rgb(look.back), eyes))
        assert found >= 7, (role, round(found, 2))


@pytest.mark.parametrize("few", [_XTERM, _LINUX], ids=["xterm", "linux"])
@pytest.mark.parametrize("name", NAMES)
def test_words_are_readable_with_16_colors(name, few):
    for role, look in Theme(name, color=True, depth=Depth.FEW).looks.items():
        found = contrast(linear(rgb(look.fore, few)), linear(rgb(look.back, few)))
        assert found >= (7 if name == "high-contrast" else 4.5), (role, round(found, 2))


@pytest.mark.parametrize("eyes", _SEEN)
@pytest.mark.parametrize("depth", [Depth.FEW, Depth.MANY])
@pytest.mark.parametrize("name", NAMES)
def test_the_cursor_and_changes_on_are_seen_as_shapes(name, depth, eyes):
    # The row under the cursor has ">" at its left, too, and CHANGES ON is written out.
    looks = Theme(name, color=True, depth=depth).looks
    text = seen(rgb(looks[Role.TEXT].back), eyes)
    assert contrast(seen(rgb(looks[Role.WRITE].back), eyes), text) >= 3
    assert looks[Role.CURSOR].back != looks[Role.TEXT].back
    assert looks[Role.CURSOR].bold


def test_without_color_no_role_has_one():
    for name in NAMES:
        theme = Theme(name, color=False)
        for role in Role:
            codes = theme.sgr(role).removeprefix("\x1b[").removesuffix("m").split(";")
            assert set(codes) <= {"", "0", "1", "4", "7"}, role


def test_every_role_has_a_look_in_every_palette():
    for name in NAMES:
        for depth in Depth:
            assert set(Theme(name, color=True, depth=depth).looks) == set(Role)


@pytest.mark.feature(164)
def test_states_are_different_words():
    # What is shown in these roles is the word itself: OK, WARN, STOP. Colors may look alike.
    from rmqctl.output.tables import STATES as FIELDS, state_color

    words = ("OK", "WARN", "STALL", "STOP", "REWIND", "UNKNOWN")
    assert {state_color(word) for word in words} >= {"red", "yellow", "green"}
    assert "status" in FIELDS
    for one, two in combinations(words, 2):
        assert one.casefold() != two.casefold()


def test_depth_and_theme_are_those_of_the_terminal():
    assert depth_of({"TERM": "xterm"}) is Depth.FEW
    assert depth_of({"TERM": "xterm-256color"}) is Depth.MANY
    assert depth_of({"TERM": "xterm", "COLORTERM": "truecolor"}) is Depth.MANY
    assert depth_of({"TERM": "linux", "COLORTERM": "truecolor"}) is Depth.FEW
    assert depth_of({"TERM": "vt100"}) is Depth.NONE
    assert theme_for({}) == "dark"
    assert theme_for({"COLORFGBG": "0;15"}) == "light"
    assert theme_for({"COLORFGBG": "0;default;15"}) == "light"
    assert theme_for({"COLORFGBG": "15;0"}) == "dark"


def test_each_shape_takes_one_cell_and_has_an_ascii_form():
    for shape in SHAPES:
        assert cells_of(shape) == 1, ascii(shape)
        assert in_ascii(shape).isascii()
        assert len(in_ascii(shape)) == 1
