"""The tables of all commands over stores of real brokers, on terminals of several widths.

Those over a store with names of 127 characters are in test_rows_document.py.
"""

import io
import json
import re
import time
from typing import NamedTuple

import pytest
from rich.cells import cell_len

from rmqctl.output.render import RowStream, render_rows
from rmqctl.output.view import Format, View
from tests.support import golden
from tests.support.every_command import CALLS, Call
from tests.support.rich_store import make_rich_store
from tests.support.terminal import on_a_terminal

LOOKS = [call for call in CALLS if not call.changes]
STORES = ("retry-dlq-4.9", "retention-4.9", "basic-5.3")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The words of calls, of a store that has what the golden stores have not."""
    place = tmp_path_factory.mktemp("widths")
    rich = make_rich_store(place / "rich" / "s", time.time_ns() // 1_000_000 - 600_000)
    new, none = str(place / "new"), str(place / "none")
    return {**rich.words, "new": new, "snapshot": none, "other": str(golden.store("basic-4.9"))}


def shown(words, name, columns, tmp_path) -> dict[Call, str]:
    """What a terminal of a width shows of each call; sentences of stderr go elsewhere."""
    file = tmp_path / "calls.json"
    file.write_text(json.dumps([call.words(words) for call in LOOKS]))
    environment = {
        "RMQCTL_STORE": str(golden.store(name)),
        "RMQCTL_NO_INPUT": "1",
        "RMQCTL_PROGRESS": "none",
        "RMQCTL_OUTPUT": "table",
        "RMQCTL_TZ": "Europe/Berlin",
        "NO_COLOR": "1",
    }
    with (tmp_path / "stderr").open("wb") as stderr:
        arguments = ["-m", "tests.support.many_calls", file]
        text = on_a_terminal(arguments, columns=columns, env=environment, stderr=stderr)
    parts = re.split(r"<<<\d+ -?\d+>>>\n", text)
    assert len(parts) == len(LOOKS) + 1
    return dict(zip(LOOKS, parts, strict=False))


def table_of(text: str) -> list[str]:
    """The lines of a table, which begins with its heading; none for a single thing."""
    has_heading = re.match(r"[A-Z_0-9]+( \(UTC[^)]*\))?(  |\n)", text)
    return text.split("\n") if has_heading else []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        pytest.param(name, columns, marks=[] if at == turn == 0 else [pytest.mark.long])
        for turn, name in enumerate(STORES)
        for at, columns in enumerate((80, 100, 140))
    ],
)
def test_every_table_keeps_to_the_width_of_the_terminal(words, name, columns, tmp_path):
    tables = 0
    for call, text in shown(words, name, columns, tmp_path).items():
        assert "internal error" not in text, call.line
        lines = table_of(text)
        tables += bool(lines)
        for line in lines:
            assert cell_len(line) <= columns, (call.line, line)
    assert tables >= 20


class Wide(NamedTuple):
    """One row with every way to be shortened."""

    group: str
    state: str
    msg_id: str
    note: str
    lag: int
    body: str


ROW = Wide("%RETRY%please_rename_unique_group_4", "CAUGHT_UP", "A" * 32, "a b " * 9, 12345, "")


def lines_at(width, rows, monkeypatch, **more):
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    said: list[str] = []
    view = View(Format.TABLE, terminal=True, remark=said.append, **more)
    render_rows(Wide, rows, view, out)
    return out.getvalue().splitlines(), said


@pytest.mark.parametrize("columns", range(37, 200, 7))
@pytest.mark.parametrize("letter", ["x", "\u65e5", "e\u0301", "\U0001f680"])
def test_bodies_of_any_letters_get_the_room_that_is_left(columns, letter, monkeypatch):
    lines, _ = lines_at(columns, [ROW._replace(body=letter * 300)], monkeypatch)
    assert max(map(cell_len, lines)) <= columns
    assert ROW.group in "\n".join(lines)
    assert "CAUGHT_UP" in "\n".join(lines)
    if columns >= 80:
        assert "12345" in "\n".join(lines)
        assert "\u2026" in lines[1]
        assert max(map(cell_len, lines)) >= columns - 1, "room is left"


def test_what_is_left_out_is_named_in_the_order_of_the_columns(monkeypatch):
    _, said = lines_at(80, [ROW._replace(body="x" * 300)], monkeypatch)
    assert said == ["not shown: MSG_ID, NOTE (-o wide shows all)"]
    _, said = lines_at(300, [ROW], monkeypatch)
    assert said == []


def test_ids_are_cut_in_the_middle(monkeypatch):
    row = ROW._replace(msg_id="0123456789ABCDEF" * 2, group="g", note="n")
    lines, _ = lines_at(40, [row], monkeypatch, columns=("group", "msg_id", "lag", "state"))
    assert re.search("01234567\u2026\\w{4,}F ", lines[1])
    assert cell_len(lines[1]) <= 40


@pytest.mark.slow
def test_thousands_of_rows_are_printed_as_they_come(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    stream = RowStream(Wide, View(Format.TABLE, terminal=True), out)
    taken = 0

    def rows():
        nonlocal taken
        for taken in range(1, 5001):
            if taken == 2001:
                assert out.getvalue().count("CAUGHT_UP") >= 1000, "all rows are kept"
            yield ROW._replace(lag=taken, body="b" * (taken // 50))

    stream.write(rows())
    stream.finish()
    lines = out.getvalue().splitlines()
    assert len(lines) == 5001
    assert sum(line.startswith("GROUP") for line in lines) == 1
    assert max(map(len, lines)) <= 80
