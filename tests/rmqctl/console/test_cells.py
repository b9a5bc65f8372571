"""Cells are safe text of an exact width, which every terminal measures alike."""

import unicodedata

import pytest
from hypothesis import example, given, strategies as st
from wcwidth import wcwidth

from rmqctl.console.cells import fitted, safe
from rmqctl.output.cells import cells_of
from rmqctl.output.fields import Fit
from tests.support.hostile_text import SPECIAL, hostile_text


@pytest.mark.slow
def test_every_character_is_shown_in_cells_on_which_the_tables_agree():
    for code in (*range(0x33480), *range(0xE0000, 0xE0200), 0xF0000, 0x10FFFF):
        shown = safe(chr(code))
        assert shown == chr(code) or shown.isascii(), hex(code)
        assert shown.isprintable(), hex(code)
        assert all(wcwidth(c) == cells_of(c) for c in shown), hex(code)
        assert cells_of(shown) > 0, hex(code)


def test_letters_of_many_scripts_stay():
    for text in (
        "Gr\u00f6\u00dfe",
        "\u0437\u0430\u043a\u0430\u0437\u044b",
        "\u8ba2\u5355",
        "\u6ce8\u6587",
        "\uc8fc\ubb38",
        "\u0637\u0644\u0628\u0627\u062a",
        "\U0001f680",
        "\u0e01\u0e47",
        "e\u0301",
        "\u26a0",
        "\u00bd",
    ):
        assert safe(text) == text, ascii(text)


def test_characters_that_terminals_join_are_escaped():
    assert safe("a\u200db") == "a\\u200db"
    assert safe("\u2764\ufe0f") == "\u2764\\ufe0f"
    assert safe("\U0001f1e9\U0001f1ea") == "\\U0001f1e9\\U0001f1ea"
    assert safe("\U0001f44d\U0001f3fd") == "\U0001f44d\\U0001f3fd"
    assert safe("\u202eabc") == "\\u202eabc"
    assert safe("a\udcffb\ud800") == "a\\xffb\\ud800"
    assert safe("\u0301a\u0301\u0301\u0301") == "\\u0301a\u0301\u0301\\u0301"


@given(st.text() | hostile_text(), st.text() | hostile_text())
@pytest.mark.slow
def test_cells_of_two_texts_add_up(one, two):
    one, two = safe(one), safe(two)
    assert safe(one) == one
    assert cells_of(one + two) == cells_of(one) + cells_of(two) == sum(map(cells_of, one + two))


@given(st.text() | hostile_text(), st.integers(0, 40), st.sampled_from(Fit), st.booleans())
@example("\u4e00" * 30, 5, Fit.MIDDLE, False)
@example("x" * 65536, 7, Fit.WHOLE, True)
@example("\x1b" * 65536, 7, Fit.END, False)
@pytest.mark.slow
def test_a_cell_has_exactly_its_width(text, width, fit, right):
    cell = fitted(text, width, fit, right=right)
    assert cells_of(cell) == width
    assert safe(cell) == cell
    assert not unicodedata.combining(cell[:1] or " ")
    if cells_of(safe(text)) <= width:
        assert cell.strip() == safe(text).strip()


def test_special_texts_have_no_control_left():
    for text in SPECIAL:
        assert safe(text).isprintable(), ascii(text)
