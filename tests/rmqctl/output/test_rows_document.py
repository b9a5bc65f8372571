"""docs/rows.md says what terminals show: each cell is checked with the program on a terminal."""

import json
import re
from functools import cache

import pytest
from rich.cells import cell_len

from rmqctl.output.fields import Kind, fields_of
from tests.support import rows_table
from tests.support.cli import ROOT, run
from tests.support.every_command import CALLS
from tests.support.rich_store import GROUPS, TOPICS
from tests.support.rows_table import WIDTHS
from tests.support.terminal import on_a_terminal

LONG = sorted((*TOPICS, *GROUPS), key=len)[-2:]
LOOKS = [call for call in CALLS if not call.changes]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place():
    with rows_table.prepared() as found:
        yield found


@pytest.fixture(scope="module")
def tables(place, once):
    return once("rows", lambda _: rows_table.measured(*place))


@pytest.mark.long
def test_the_document_has_the_columns_that_terminals_leave_out(tables):
    written = (ROOT / "docs" / "rows.md").read_text("utf-8")
    assert written == rows_table.document(tables), "run `make rows`"


@pytest.mark.long
def test_every_line_keeps_to_the_terminal_but_for_names_that_are_longer(tables):
    assert len(tables) > 70
    for table in tables:
        for width in WIDTHS:
            for line in table.tables[width]:
                alone = line.strip() == line and any(
                    line in (name, f"%RETRY%{name}", f"%DLQ%{name}", f"orders@{name}")
                    for name in LONG
                )
                assert cell_len(line) <= width or alone, (table.call.line, line)


@pytest.mark.long
def test_names_and_states_are_whole_at_every_width(tables):
    """The words of columns that are never cut, from a terminal that has room for all."""
    for table in tables:
        for width in WIDTHS:
            narrow = table.tables[width]
            assert len(narrow[0].split()) <= len(table.whole) * 2
            shown = set(rows_table.headings_in(narrow[0]))
            for name in ("GROUP", "TOPIC", "STATE", "STATUS", "EVENT", "CODE", "SEVERITY", "KIND"):
                if name in shown:
                    text = "\n".join(narrow)
                    for value in _column(table, name):
                        assert value in text, (table.call.line, width, value)


def _column(table, name):
    """The values of a column of plain words on a very wide terminal."""
    head, *lines = table.very_wide
    begin = head.index(name) if not head.startswith(name) else 0
    found = (re.match(r"(\S+)(?:  |$)", line[begin:]) for line in lines)
    return {match[1] for match in found if match}


@pytest.mark.long
def test_what_is_left_out_is_named_once(place):
    root, words = place
    for width in WIDTHS:
        shown = rows_table.on_terminals(LOOKS, root, words, width, sentences=True)
        for call, (_, text) in shown.items():
            named = re.findall(r"not shown: (.*?) \(-o wide shows all\)", text.replace("\n", " "))
            assert len(named) <= 1, call.line
            for name in named[0].split(", ") if named else ():
                heads = [line for line in text.splitlines() if rows_table.headings_in(line)]
                assert name not in heads[0].split(), call.line


@pytest.fixture(scope="module")
def shown(place):
    """What the calls that only look show in a format: they are run once for all tests here."""
    root, words = place

    @cache
    def in_format(form):
        return rows_table.on_terminals(LOOKS, root, words, 140, RMQCTL_OUTPUT=form)

    return in_format


@pytest.mark.long
@pytest.mark.parametrize("form", ["plain", "jsonl", "csv", "yaml", "tsv", "md", "wide"])
def test_every_format_has_the_same_number_of_rows(shown, form):
    exact, other = shown("json"), shown(form)
    for call in LOOKS:
        assert exact[call][0] == other[call][0], call.line
        value = json.loads(exact[call][1]) if exact[call][1].startswith(("[", "{")) else None
        if form == "jsonl" and isinstance(value, list) and not call.rows_at:
            assert len(other[call][1].splitlines()) == len(value), call.line


def test_fields_that_are_not_named_as_unknown_are_never_null(shown):
    exact = shown("jsonl")
    known = {command.name: command for command in rows_table.commands()}
    for call in LOOKS:
        command = known.get(call.command)
        if command is None or not exact[call][1].startswith("{"):
            continue
        fields = {f.name: f for kind in command.row_types for f in fields_of(kind)}
        for line in exact[call][1].splitlines():
            for name, value in json.loads(line).items():
                if name in fields and value is None and fields[name].kind is not Kind.OBJECT:
                    types = [f for t in command.row_types for f in fields_of(t) if f.name == name]
                    assert any(f.nullable for f in types), (call.line, name)


NOTHING = {
    "consume": "t -e",
    "topic list": "--where topic=none",
    "topic describe": "--where topic=none",
    "topic queues": "--where topic=none",
    "topic stats": "--where topic=none",
    "topic usage": "--where topic=none",
    "group list": "--where group=none",
    "group describe": "--where group=none",
    "group clients": "",
    "offset list": "--where group=none",
    "offset inspect": "--where group=none",
    "offset history": "",
    "offset diff": "g g",
    "lag show": "--where group=none",
    "lag histogram": "g --where bucket=none",
    "message query": "-t t --key none",
    "message search": "none",
    "message stats": "--by tag --where value=none",
    "dlq list": "",
    "dlq browse": "g",
    "dlq groups": "g",
    "retry browse": "g",
    "retry agenda": "",
    "audit list": "--where command=none",
    "store du": "--where topic=none",
    "store diff": "{store} {store}",
    "store tail": "-e --where topic=none",
    "context list": "",
    "cheat": "--where task=none -o table",
    "mqadmin": "--where name=none",
}
"""A call of each command that has a sentence for no rows, which has none."""


def test_what_is_said_of_no_rows(tmp_path):
    store = tmp_path / "s"
    assert run("store", "init", store, "--small", "-q").code == 0
    assert run("topic", "create", "t", "-q", "-S", store).code == 0
    assert run("group", "create", "g", "-q", "-S", store).code == 0
    assert run("produce", "u", "-q", "-S", store, stdin=b"x\n").code == 0
    assert run("consume", "u", "-g", "g", "-e", "-q", "-S", store).code == 0
    sentences = {
        command.name: command.nothing for command in rows_table.commands() if command.nothing
    }
    assert sentences.keys() == NOTHING.keys()
    lines = [f"{name} {line}".format(store=store).split() for name, line in NOTHING.items()]
    (tmp_path / "calls.json").write_text(json.dumps(lines))
    environment = {"NO_COLOR": "1", "RMQCTL_STORE": str(store), "RMQCTL_PROGRESS": "none"}
    arguments = ["-m", "tests.support.many_calls", tmp_path / "calls.json"]
    text = on_a_terminal(arguments, columns=200, env=environment)
    parts = re.split(r"<<<\d+ (-?\d+)>>>\n", text)[:-1]
    for name, shown, code in zip(NOTHING, parts[::2], parts[1::2], strict=True):
        said = sentences[name].replace("STORE", str(store))
        noun = said.partition(" in ")[0].removesuffix(" to read")
        assert (said in shown) or f"{noun} match" in shown, (name, shown)
        assert code == "0", (name, shown)
