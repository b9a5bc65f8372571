"""Every command in every format: what is printed says the same, and says it safely."""

import csv
import io
import json
import re
import shutil
import time
from typing import Any

import pytest
import yaml

from rmqctl import lazy
from rmqctl.output.fields import Field, Kind, fields_of
from rmqctl.text.times import parse_time
from rmqctl.tree import TREE, Leaf
from tests.support.cli import run
from tests.support.every_command import CALLS, WITHOUT_ROWS, Call
from tests.support.rich_store import Rich, make_rich_store

SETTINGS = """\
tz = "UTC"
reason = "it \\u001b[31mis\\u001b[0m | so"

[contexts.prod]
tz = "Asia/Tokyo"
reason = "a\\tb"
"""
NOT_FOR_TERMINALS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """The store, made once; a pristine copy lies beside it."""
    place = tmp_path_factory.mktemp("rich")
    made = make_rich_store(place / "now" / "s", time.time_ns() // 1_000_000 - 600_000)
    (place / "now" / "settings.toml").write_text(SETTINGS)
    shutil.copytree(place / "now", place / "kept")
    made.words["new"] = str(place / "now" / "new")
    return made


@pytest.fixture
def called(rich, monkeypatch):
    """Runs a call; time stands still, so that ages are the same in every format."""
    now = rich.now_ms * 1_000_000
    monkeypatch.setattr("rmqctl.context.time.time_ns", lambda: now)
    monkeypatch.setenv("RMQCTL_STORE", str(rich.root))
    monkeypatch.setenv("RMQCTL_CONFIG", str(rich.root.parent / "settings.toml"))
    place = rich.root.parent

    def call(what: Call, *options: object):
        words = what.words(rich.words)
        if "--" in words[1:]:
            at = words.index("--")
            words[at:at] = map(str, options)
            options = ()
        try:
            return run(*words, *options, stdin=what.stdin)
        finally:
            if what.changes:
                shutil.rmtree(place)
                shutil.copytree(place.parent / "kept", place)

    return call


def row_commands() -> dict[str, type | None]:
    """All commands of the tree with the type of their rows."""
    found: dict[str, type | None] = {}
    for name, entry in TREE.items():
        leaves = (
            {name: entry}
            if isinstance(entry, Leaf)
            else {f"{name} {verb}": leaf for verb, leaf in entry.verbs.items()}
        )
        for path, leaf in leaves.items():
            command: Any = lazy.build(path.split()[-1], leaf)
            found[path] = command.row_type
    return found


def test_no_command_is_missing_here():
    commands = row_commands()
    here = {call.command for call in CALLS}
    assert here - set(commands) == set(), "calls of commands that there are not"
    assert set(commands) - here - set(WITHOUT_ROWS) == set(), "commands without a call"
    assert {name for name, kind in commands.items() if kind is None} <= set(WITHOUT_ROWS)


@pytest.mark.feature(138)
@pytest.mark.parametrize("name", sorted({call.command for call in CALLS}))
def test_the_fields_are_told_on_request(name):
    result = run(*name.split(), "-o", "help")
    assert (result.code, result.err) == (0, "")
    assert result.lines[0].split() == ["FIELD", "TYPE", "UNIT", "MEANING"]
    row_type = row_commands()[name]
    assert row_type is not None
    fields = fields_of(row_type)
    assert [line.split()[0] for line in result.lines[1:]] == [field.name for field in fields]
    assert all(field.help for field in fields), "a field without a meaning"


# -- what machines read -----------------------------------------------------------------------


def base(called, call):
    """The rows of a call as JSON has them, whether it is one, and all keys in their order."""
    result = called(call, "-o", "json")
    assert result.code in {0, 8}, result.err
    value = json.loads(result.out)
    one = isinstance(value, dict)
    return ([value] if one else value), one


def steady(call, rows):
    """Rows without what is not the same twice."""
    return [{k: v for k, v in row.items() if k not in call.volatile} for row in rows]


def as_text(value: Any) -> str:
    """A value in CSV: the rules of the contract, written once more."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        return " ".join(value)
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)  # a float as Python writes it, so that it reads back the same


def unescaped(text: str) -> str:
    return re.sub(r"\\([tn\\])", lambda found: {"t": "\t", "n": "\n"}.get(found[1], "\\"), text)


def ids(call: Call) -> str:
    return call.line


@pytest.mark.feature(134, 135, 136)
@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_all_formats_say_the_same(called, call):
    rows, one = base(called, call)
    wanted = steady(call, rows)
    assert rows or call.command in {"group clients"}, "nothing that could differ"

    lines = called(call, "-o", "jsonl").out.split("\n")[:-1]
    assert steady(call, [json.loads(line) for line in lines]) == wanted

    loaded = yaml.safe_load(called(call, "-o", "yaml").out)
    assert steady(call, [loaded] if one else loaded) == wanted
    if call.rows_at:
        rows = rows[0][call.rows_at]
        wanted = steady(call, rows)

    csv.field_size_limit(1 << 30)  # which reading CSV sets for the whole process
    read = list(csv.DictReader(io.StringIO(called(call, "-o", "csv").out, newline=""), strict=True))
    assert len(read) == len(rows)
    columns = list(read[0]) if read else []
    expected = [{name: as_text(row.get(name)) for name in columns} for row in wanted]
    assert steady(call, read) == steady(call, expected)
    assert set(columns) <= {*columns, *(wanted[0] if wanted else ())}

    head, *body = [
        line.split("\t") for line in called(call, "-o", "tsv").raw.decode().split("\n")[:-1]
    ]
    assert head == columns or not rows
    cells = [dict(zip(head, map(unescaped, line), strict=True)) for line in body]
    assert steady(call, cells) == steady(call, expected)


# -- what people read -------------------------------------------------------------------------


@pytest.mark.feature(147)
@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_people_get_whole_values_and_nothing_that_commands_their_terminal(called, call):
    rows, _ = base(called, call)
    fields = fields_of(row_commands()[call.command] or object)
    for form in ("table", "wide", "md", "plain"):
        result = called(call, "-o", form)
        assert result.code in {0, 8}, result.err
        if form != "plain":
            assert not NOT_FOR_TERMINALS.search(result.out.replace("\n", "")), form
        assert "\x1b" not in result.err
