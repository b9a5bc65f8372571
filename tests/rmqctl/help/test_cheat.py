import pytest

from rmqctl.help.cheats import SHEETS
from tests.support.cli import run
from tests.support.parsing import parsed
from tests.support.shell_lines import calls_in

LINES = [line for sheet in SHEETS.values() for line in sheet.lines.values()]


@pytest.mark.feature(146)
@pytest.mark.parametrize("line", LINES)
def test_every_line_is_one_that_the_program_takes(line):
    calls = calls_in(line)
    assert calls
    for words in calls:
        assert parsed(words)


def test_calls_are_found_in_pipes_substitutions_and_quotes():
    assert calls_in("a 'b|c' | rmqctl x 'y z' -e > f") == [["x", "y z", "-e"]]
    assert calls_in("source <(rmqctl completion bash)") == [["completion", "bash"]]
    assert calls_in("rmqctl a | rmqctl b < c && echo") == [["a"], ["b"]]


def test_sheets_are_listed_and_shown():
    listed = run("cheat").lines
    assert [line.split()[2] for line in listed] == list(SHEETS)
    shown = run("cheat", "reset").lines
    assert shown[0].startswith("# ")
    assert "rmqctl offset undo --last" in shown
    assert len(shown) == 2 * len(SHEETS["reset"].lines)


def test_lines_are_rows_too():
    rows = run("cheat", "-o", "json").json()
    assert [row["command"] for row in rows] == LINES
    assert {row["sheet"] for row in run("cheat", "dlq", "-o", "json").json()} == {"dlq"}
    assert run("cheat", "--where", "command ~ redrive", "-o", "tsv").code == 0


def test_an_unknown_sheet_names_the_nearest():
    result = run("cheat", "rest")
    assert result.code == 3
    assert "there is no sheet 'rest', did you mean 'reset'?" in result.err
