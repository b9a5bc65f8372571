"""A value of many characters is written in parts, and the text is that of the whole."""

import csv
import io
import json
import os
from typing import NamedTuple

import pytest
import yaml

from rmqctl.output.encoders import encoder_for
from rmqctl.output.fields import fields_of
from rmqctl.output.render import render_one, render_rows
from rmqctl.output.values import LONG
from rmqctl.output.view import Format, View

pytestmark = pytest.mark.slow

ODD = 'a"b\\c,d\r\n\te\x00\x1b\x7f\x85\u2028\u202e\ufeff\ufffe\U0001f600\u4e3b %&*!|>#: - [x] {y}'
VALUES = {
    "odd": ODD * (LONG // len(ODD) + 2),
    "plain": "x" * (LONG + 5),
    "quotes": '"' * (LONG + 5),
    "zeros": "\0" * (LONG + 5),
    "comma at the end": "x" * (LONG + 5) + ",",
    "a blank in front": " x" * LONG,
}
LIKE_ODD = {"plain", "quotes", "zeros"}
"""Values of characters that the odd one has, too."""
PROGRAMS = [Format.JSON, Format.JSONL, Format.YAML, Format.CSV, Format.TSV, Format.PLAIN]


class Row(NamedTuple):
    topic: str
    body: str | None
    body_base64: str | None
    body_size: int


class Parts(io.StringIO):
    """Output that knows its longest part."""

    longest = 0

    def write(self, text):
        self.longest = max(self.longest, len(text))
        return super().write(text)


def rows_of(value):
    return [Row("t", "short", None, 5), Row("t", value, value, len(value)), Row("u", None, "z", 1)]


def parsed(text, form):
    match form:
        case Format.JSON:
            return json.loads(text)
        case Format.JSONL:
            return [json.loads(line) for line in text.split("\n")[:-1]]
        case Format.YAML:
            return yaml.load(text, yaml.CSafeLoader)
    return None


@pytest.mark.parametrize("form", PROGRAMS)
@pytest.mark.parametrize(
    ("value", "terminal"),
    [
        *(
            pytest.param(value, False, marks=pytest.mark.long if value in LIKE_ODD else [])
            for value in VALUES
        ),
        *(
            pytest.param(value, True, marks=[] if value == "odd" else pytest.mark.long)
            for value in VALUES
        ),
    ],
)
def test_rows_are_those_of_the_whole(value, form, terminal, monkeypatch):
    rows, view = rows_of(VALUES[value]), View(form, terminal=terminal)
    out = Parts()
    render_rows(Row, rows, view, out)
    assert out.longest < 7 * (1 << 16)
    if form is Format.YAML:
        assert parsed(out.getvalue(), form) == [row._asdict() for row in rows]
        return
    encoder = encoder_for(fields_of(Row), view)
    whole = encoder.head() + encoder.rows(rows) + encoder.tail()
    assert out.getvalue() == whole


@pytest.mark.parametrize("form", PROGRAMS[:4])
@pytest.mark.parametrize(
    "value",
    [pytest.param(value, marks=pytest.mark.long if value in LIKE_ODD else []) for value in VALUES],
)
def test_a_single_object_is_that_of_the_whole(value, form):
    row = rows_of(VALUES[value])[1]
    out = Parts()
    render_one(Row, row, View(form), out)
    assert out.longest < 7 * (1 << 16)
    text = out.getvalue()
    if form in (Format.JSON, Format.YAML):
        assert parsed(text, form) == row._asdict()
    elif form is Format.JSONL:
        assert parsed(text, form) == [row._asdict()]
    else:
        csv.field_size_limit(1 << 24)
        (found,) = csv.DictReader(io.StringIO(text, newline=""))
        assert found == {name: str(value) for name, value in row._asdict().items()}


@pytest.mark.parametrize("form", [Format.TABLE, Format.WIDE, Format.MD])
def test_a_cell_for_people_is_cut_and_says_so(form):
    out = Parts()
    render_rows(Row, rows_of("x" * LONG), View(form), out)
    assert out.longest < 1 << 20
    assert f"xxx... ({LONG - (1 << 16)} more; -o json has them)" in out.getvalue()


def test_columns_without_the_value_are_written_as_usual():
    out = Parts()
    render_rows(Row, rows_of(VALUES["odd"]), View(Format.CSV, columns=("topic", "body_size")), out)
    assert out.getvalue().split("\r\n")[1] == "t,5"


def test_what_looks_like_the_word_is_a_value(monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)
    rows = [Row("t", "y" * (LONG + 1), "value" + "0" * 16 + "y", LONG + 1)]
    out = Parts()
    render_rows(Row, rows, View(Format.JSONL), out)
    assert parsed(out.getvalue(), Format.JSONL) == [rows[0]._asdict()]
