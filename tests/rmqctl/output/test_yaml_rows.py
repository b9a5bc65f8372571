"""Rows as YAML by a template: the bytes that PyYAML writes."""

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from rmqctl.output.yaml_rows import YamlRows
from tests.support.examples import examples

LINE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
WORDS = st.sampled_from(
    [
        *("yes", "No", "on", "OFF", "true", "null", "~", "Null", "=", "<<", "", " ", "a ", " a"),
        *("1", "-1", "0x1F", "0b1", "1_000", "1.5", ".5", ".inf", "1e3", "1:30", "2026-01-31"),
        *(
            "2026-01-31T10:00:00Z",
            "---",
            "--- a",
            "...",
            "- a",
            "-a",
            "?",
            "? a",
            ":a",
            "a:",
            "a: b",
        ),
        *("a #b", "a#b", "#a", "[a", "{a: 1}", "a, b", "&a", "*a", "!a", "|", ">", "'a'", '"a"'),
        *("%a", "@a", "`a", "it's", "7F00000120D30D398A128534A73A0000", "127.0.0.1:10911"),
    ]
)
TEXT = WORDS | LINE | st.text(max_size=8) | st.text("ab: \n\t'\"#-\u2028\x85\xa0", max_size=8)
SCALAR = TEXT | st.none() | st.booleans() | st.integers() | st.floats()
VALUE = (
    SCALAR
    | st.lists(SCALAR, max_size=3)
    | st.dictionaries(TEXT | st.just("n" * 130), SCALAR | st.lists(SCALAR, max_size=2), max_size=3)
    | st.lists(st.dictionaries(TEXT, SCALAR, max_size=2), max_size=2)
)


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=3))
def test_the_text_is_that_of_the_library(rows):
    names = ["body", "no"]
    wanted = yaml.safe_dump(
        [dict(zip(names, row, strict=True)) for row in rows],
        sort_keys=False,
        allow_unicode=True,
        width=2**31,
    )
    assert YamlRows(names).text(rows) == wanted


@pytest.mark.parametrize("text", ["yes", "1", "it's", "a", "a: b", "", "\u20ac", "---"])
def test_a_text_is_known_the_second_time(text):
    rows = YamlRows(["a"])
    assert rows.text([[text]]) == rows.text([[text]])


def test_the_known_texts_do_not_grow_without_end():
    rows = YamlRows(["a"])
    rows.text([[f"text {number}"] for number in range(10_000)])
    assert len(rows._known) <= 4096
