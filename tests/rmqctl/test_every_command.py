"""Every command in every format: what is printed says the same, and says it safely."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from functools import cache
from typing import Any

import pytest
import yaml

from rmqctl.cli import lazy
from rmqctl.cli.tree import TREE, CommandRef
from rmqctl.output.fields import Field, Kind, fields_of
from storage.format.message import RESERVED_PROPERTIES
from storage.parse.times import parse_time
from tests.support import golden
from tests.support.cli import ROOT, run
from tests.support.copies import age_files, copy_store, folder_on_disk
from tests.support.every_command import CALLS, WITHOUT_ROWS, Call
from tests.support.rich_store import TEXTS, TOPIC, make_rich_store
from tests.support.terminal import on_a_terminal

SETTINGS = """\
tz = "UTC"
reason = "it \\u001b[31mis\\u001b[0m | so"

[contexts.prod]
tz = "Asia/Tokyo"
reason = "a\\tb"
"""
EMPTY = frozenset(
    {
        *("group clients", "lag risk", "store rebuild", "store clean"),
        *("store recover-offsets", "store recover-config", "store repair"),
    }
)
"""No process lives here, nothing is about to be deleted, and nothing is wrong."""
NOT_FOR_TERMINALS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


@pytest.fixture(scope="module")
def rich():
    """The store, made once; a pristine copy lies beside it."""
    place = folder_on_disk("rich-")
    made = make_rich_store(place / "now" / "s", time.time_ns() // 1_000_000 - 600_000)
    (place / "now" / "settings.toml").write_text(SETTINGS)
    exported = run("consume", TOPIC, "-e", "-o", "jsonl", "-S", made.root)
    (place / "now" / "exported.jsonl").write_bytes(exported.raw)
    snapshot = place / "now" / "snapshot"
    assert run("store", "snapshot", "--save", snapshot, "--copy", "-S", made.root).code == 0
    made.words["snapshot"] = str(snapshot)
    made.words["other"] = str(golden.extract("basic-4.9", place / "now"))
    age_files(place / "now")
    copy_store(place / "now", place / "kept")
    shutil.rmtree(place / "now")  # a copy has other holes, and so another size on disk
    copy_store(place / "kept", place / "now")
    made.words["new"] = str(place / "now" / "new")
    yield made
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def answers(rich):
    """What this store answered, by call; another run of the fixture makes another store."""
    return {}


@pytest.fixture
def called(rich, monkeypatch):
    """Runs a call; time stands still, so that ages are the same in every format."""
    now = rich.now_ms * 1_000_000
    monkeypatch.setattr("rmqctl.cli.context.time.time_ns", lambda: now)
    monkeypatch.setenv("RMQCTL_STORE", str(rich.root))
    monkeypatch.setenv("RMQCTL_CONFIG", str(rich.root.parent / "settings.toml"))
    place = rich.root.parent
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(place / "xdg"))

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
                copy_store(place.parent / "kept", place)

    return call


@cache
def row_commands() -> dict[str, type | None]:
    """All commands of the tree with the type of their rows."""
    found: dict[str, type | None] = {}
    for name, entry in TREE.items():
        leaves = (
            {name: entry}
            if isinstance(entry, CommandRef)
            else {f"{name} {verb}": leaf for verb, leaf in entry.verbs.items()}
        )
        for path, leaf in leaves.items():
            command: Any = lazy.build(path.split()[-1], leaf)
            found[path] = command.row_types[0] if command.row_types else None
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


@pytest.fixture
def base(called, answers):
    """Gives the rows of a call as JSON has them, and whether it is one thing; asked for once."""

    def asked(call):
        if call not in answers:
            result = called(call, "-o", "json")
            assert result.code == 0, result.err
            value = json.loads(result.out)
            answers[call] = (value, False) if isinstance(value, list) else ([value], True)
        return answers[call]

    return asked


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


def canonical(rows):
    """Objects in cells in the one form of :func:`as_text`, however their text is escaped."""
    return [
        {
            name: as_text(json.loads(cell)) if cell.startswith(('{"', '[{"')) else cell
            for name, cell in row.items()
        }
        for row in rows
    ]


def unescaped(text: str) -> str:
    return re.sub(r"\\([tn\\])", lambda found: {"t": "\t", "n": "\n"}.get(found[1], "\\"), text)


FIRST_CALLS = list(
    {
        call.command: call
        for changes in (True, False)
        for call in reversed(CALLS)
        if call.changes == changes
    }.values()
)
"""One of each command: the first that changes nothing, as after a change the store is copied."""


def short_runs_first(calls):
    """The calls; in short runs those of one command in three."""
    short = [call for call in FIRST_CALLS[::3] if call.command != "bench both"]  # takes long
    return [
        pytest.param(call, id=call.line, marks=() if call in short else pytest.mark.long)
        for call in calls
    ]


ALL_CALLS = short_runs_first(CALLS)


@pytest.mark.feature(134, 135, 136)
@pytest.mark.parametrize("call", ALL_CALLS)
@pytest.mark.slow
def test_all_formats_say_the_same(called, base, call):
    rows, one = base(call)
    wanted = steady(call, rows)
    assert rows or call.command in EMPTY, "nothing that could differ"

    loaded = yaml.safe_load(called(call, "-o", "yaml").out)
    assert steady(call, [loaded] if one else loaded) == wanted
    if call.rows_at:
        rows = rows[0][call.rows_at]
        wanted = steady(call, rows)
    names = list(rows[0]) if rows else []
    assert [list(row) for row in rows] == [names] * len(rows), "rows with other members"

    lines = called(call, "-o", "jsonl").out.split("\n")[:-1]
    assert steady(call, [json.loads(line) for line in lines]) == wanted

    csv.field_size_limit(1 << 30)  # which reading CSV sets for the whole process
    read = list(csv.DictReader(io.StringIO(called(call, "-o", "csv").out, newline=""), strict=True))
    assert len(read) == len(rows)
    assert (list(read[0]) if read else []) == names
    expected = [{name: as_text(value) for name, value in row.items()} for row in wanted]
    assert canonical(steady(call, read)) == expected

    head, *body = [
        line.split("\t") for line in called(call, "-o", "tsv").raw.decode().split("\n")[:-1]
    ]
    assert head == names or not rows
    cells = [dict(zip(head, map(unescaped, line), strict=True)) for line in body]
    assert canonical(steady(call, [exact_again(row) for row in cells])) == expected


def exact_again(row: dict[str, str]) -> dict[str, str]:
    """The cells of tsv and plain as CSV has them: times as numbers, unknown as empty."""
    return {
        name: ""
        if cell == "-"
        else str(parse_time(cell, 0, None))
        if name.endswith("_timestamp") or name == "as_of"
        else cell
        for name, cell in row.items()
    }


@pytest.mark.slow
@pytest.mark.feature(137)
@pytest.mark.parametrize(
    "call", short_runs_first(call for call in CALLS if not call.changes and not call.rows_at)
)
def test_chosen_columns_are_in_every_row_of_every_format(called, base, call):
    """The last two fields in the other order: the last ones are those that may be null."""
    rows, one = base(call)
    if not rows:
        return  # as those in EMPTY, which is checked above
    chosen = list(rows[0])[:-3:-1]
    option = ("--columns", ",".join(chosen))
    value = json.loads(called(call, *option, "-o", "json").out)
    assert [list(row) for row in ([value] if one else value)] == [chosen] * len(rows)
    read = csv.DictReader(io.StringIO(called(call, *option, "-o", "csv").out, newline=""))
    assert list(read.fieldnames or ()) == chosen
    refused = called(call, "--columns", f"{chosen[0]},nothing", "-o", "json")
    assert (refused.code, refused.out) == (2, ""), refused.err
    assert "'nothing' is not a field" in refused.err


# -- what people read -------------------------------------------------------------------------


def shown(value: str) -> str:
    """Text as people see it: control characters escaped."""
    names = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return re.sub(
        "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]",
        lambda found: names.get(
            found[0], f"\\x{ord(found[0]):02x}" if found[0] < "\u0100" else f"\\u{ord(found[0]):x}"
        ),
        value,
    )


def printed_fields(name: str, form: str) -> list[Field]:
    fields = fields_of(row_commands()[name] or object)
    return [field for field in fields if form == "wide" or not field.wide]


@pytest.mark.feature(147)
@pytest.mark.parametrize("call", ALL_CALLS)
@pytest.mark.slow
def test_people_get_whole_values_and_nothing_that_commands_their_terminal(called, base, call):
    rows, one = base(call)
    for form in ("table", "wide", "md"):
        text = called(call, "-o", form).out
        assert not NOT_FOR_TERMINALS.search(text.replace("\n", "")), form
        for row in [] if one else steady(call, rows):
            for field in printed_fields(call.command, form):
                value = row.get(field.name)
                if field.kind is Kind.STRING and isinstance(value, str):
                    cell = shown(value)
                    if form == "md":
                        cell = re.sub(r"([\\|*`\[<&])", r"\\\1", cell)
                    assert cell in text, (form, field.name)


def is_list(call: Call) -> bool:
    """Whether its plain form is the rows and nothing else."""
    whole = {
        "consume",
        "produce",
        "message export",
        "store fsck",
        "lag report",
        "group why",
        "config get",
        "mqadmin",
    }
    return not call.changes and call.command not in whole


@pytest.mark.slow
@pytest.mark.parametrize("call", short_runs_first(call for call in CALLS if is_list(call)))
def test_plain_reads_back_line_by_line(called, base, call):
    rows, one = base(call)
    lines = called(call, "-o", "plain").raw.decode().split("\n")[:-1]
    if one:
        names = [unescaped(line.split("\t")[0]).partition(".")[0] for line in lines]
        present = printed_fields(call.command, "plain")
        assert list(dict.fromkeys(names)) == [f.name for f in present if f.name in names]
        assert all(line.count("\t") == 1 for line in lines)
        return
    head, *body = [line.split("\t") for line in lines]
    assert len(body) == len(rows)
    for cells, row in zip(body, rows, strict=True):
        for name, cell in zip(head, cells, strict=True):
            value = row.get(name)
            if name in call.volatile:
                continue
            if value is None:
                assert cell == "-"
            elif name.endswith("_timestamp"):
                assert parse_time(cell, 0, None) == value
            elif not isinstance(value, (list, dict)):
                assert unescaped(cell) == as_text(value)


@pytest.mark.slow
@pytest.mark.parametrize("call", short_runs_first(call for call in CALLS if is_list(call)))
def test_markdown_is_one_table(called, call):
    lines = called(call, "-o", "md").raw.decode().split("\n")[:-1]
    bars = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines]
    assert len(set(bars)) == 1, "a cell that ends another one"


# -- on terminals and in pipes ----------------------------------------------------------------

LOOKS = [call for call in CALLS if not call.changes]
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def harmless(text: str) -> str:
    """Text without colours, tabs and CSV's ends of lines."""
    return COLOURS.sub("", text).replace("\t", "").replace("\r\n", "\n")


def many_calls(rich, tmp_path, looks):
    """Calls in one process, on streams of one's choice: words for Python, and variables."""
    calls = [call.words(rich.words) for call in looks]
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    environment = {
        "RMQCTL_STORE": str(rich.root),
        "RMQCTL_CONFIG": str(rich.root.parent / "settings.toml"),
        "RMQCTL_NO_INPUT": "1",
        "RMQCTL_PROGRESS": "none",
    }
    return ["-m", "tests.support.many_calls", tmp_path / "calls.json"], environment


@pytest.fixture
def program(rich, tmp_path):
    """All calls that only look."""
    return many_calls(rich, tmp_path, LOOKS)


def by_call(text: str, looks: list[Call] = LOOKS) -> dict[Call, str]:
    """What each call showed, when all of them have run."""
    parts = re.split(r"<<<\d+ (-?\d+)>>>\n", text)
    assert len(parts) == 2 * len(looks) + 1
    assert all(int(code) in {0, 1, 2, 3} for code in parts[1::2])
    return dict(zip(looks, parts[::2], strict=False))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, pytest.param(200, marks=pytest.mark.long)])
def test_nothing_commands_a_terminal_of_any_width(program, columns):
    arguments, environment = program
    for call, text in by_call(on_a_terminal(arguments, columns=columns, env=environment)).items():
        assert not NOT_FOR_TERMINALS.search(harmless(text)), call.line
        assert "internal error" not in text, call.line


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    ["csv", *(pytest.param(form, marks=pytest.mark.long) for form in ("plain", "json", "yaml"))],
)
def test_no_format_commands_a_terminal(program, form):
    arguments, environment = program
    text = on_a_terminal(
        arguments, columns=80, env={**environment, "RMQCTL_OUTPUT": form, "NO_COLOR": "1"}
    )
    for call, printed in by_call(text).items():
        assert not NOT_FOR_TERMINALS.search(harmless(printed)), call.line


@pytest.mark.slow
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.long)])
def test_colour_comes_on_a_terminal_and_goes_with_no_color(rich, tmp_path, every):
    groups = Call("group list")
    looks = [groups, *(call for call in LOOKS[::every] if call != groups)]
    arguments, environment = many_calls(rich, tmp_path, looks)
    coloured = on_a_terminal(arguments, columns=120, env=environment)
    plain = on_a_terminal(arguments, columns=120, env={**environment, "NO_COLOR": "1"})
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert COLOURS.sub("", by_call(coloured, looks)[groups]) == by_call(plain, looks)[groups]


@pytest.mark.parametrize("call", [Call("group list"), Call("topic list"), Call("offset list")])
def test_force_color_does_not_reach_data(called, call):
    usual = called(call, "-o", "json")
    assert run(*call.words({}), "-o", "json", env={"FORCE_COLOR": "1"}).raw == usual.raw
    assert "\x1b" not in run(*call.words({}), "-o", "csv", env={"FORCE_COLOR": "1"}).out.replace(
        "\x1b[31m", ""
    )


@pytest.mark.slow
@pytest.mark.feature(142, 143)
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.long)])
def test_a_reader_that_goes_away_is_no_error(rich, tmp_path, every):
    looks = LOOKS[::every]
    arguments, environment = many_calls(rich, tmp_path, looks)
    done = subprocess.run(
        [sys.executable, *map(str, arguments), "closed"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
    )
    ends = re.findall(r"<<<\d+ (-?\d+)>>>(.*)", done.stdout)
    assert len(ends) == len(looks)
    for call, (code, said) in zip(looks, ends, strict=True):
        assert code == "141", (call.line, said)
        assert not re.search("rmqctl: (?!warning: )", said), (call.line, said)


@pytest.mark.slow
def test_head_ends_a_command_silently(rich):
    words = 'exec 2>&1; "$@" | head -1; echo ${PIPESTATUS[0]}'
    # More than a pipe holds: it cannot be done before the reader has gone.
    command = [sys.executable, "-m", "rmqctl", "topic", "queues", "BenchmarkTest", "-o", "jsonl"]
    done = subprocess.run(
        ["bash", "-c", words, "bash", *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "RMQCTL_STORE": str(rich.root)},
        check=True,
    )
    first, code, *rest = done.stdout.split("\n")
    assert json.loads(first)["topic"] == "BenchmarkTest"
    assert (code, rest) == ("141", [""])


# -- from one end to the other ----------------------------------------------------------------


def sent(store, topic):
    """What producers gave of the messages of a topic."""
    lines = run("consume", topic, "-e", "-o", "jsonl", "-S", store).raw.split(b"\n")[:-1]
    names = ("body", "body_base64", "keys", "tags", "flag")
    found = []
    for line in lines:
        row = json.loads(line)
        properties = row["properties"]
        users = {n: v for n, v in properties.items() if n not in RESERVED_PROPERTIES}
        found.append(({name: row.get(name) for name in names}, users))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_topic_is_copied_through_a_pipe_without_loss(rich, tmp_path, form):
    piped = run("consume", TOPIC, "-e", "-o", form, "-S", rich.root).raw
    copy = tmp_path / "copy"
    assert run("store", "init", copy, "--small", "-q").code == 0
    result = run("produce", "copied", "--input", form, "-Q", 0, "-S", copy, stdin=piped)
    assert result.code == 0, result.err
    messages = sent(rich.root, TOPIC)
    assert len(messages) >= len(TEXTS)
    assert {number for number, (fields, _) in enumerate(messages) if fields["flag"]} != set()
    assert sent(copy, "copied") == messages
