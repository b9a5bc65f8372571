"""docs/changes.md says what changing commands do: each cell is checked with the program."""

import json
import re

import pytest

from rmqctl.admin.changes import Change, Outcome
from rmqctl.cli.marks import Changes
from tests.support import changes_table
from tests.support.changes_table import CASES, declared, document, marked
from tests.support.cli import ROOT
from tests.support.every_command import CALLS

pytestmark = pytest.mark.slow
DOCUMENT = ROOT / "docs" / "changes.md"


@pytest.fixture(scope="module")
def seen(once):
    return once("changes", lambda _: changes_table.measured())


def asking(seen):
    return [row for row in seen if row.how is Changes.ASKS]


def timeless(text):
    """A plan without ages, which differ from call to call."""
    return re.sub(r"\d{4,}", "N", text)


def test_every_command_that_changes_something_has_a_row():
    assert {case.command for case in CASES} == set(marked())
    written = {name for name, _ in declared(DOCUMENT.read_text("utf-8")).items()}
    assert written == {case.command for case in CASES}
    assert {call.command for call in CALLS if call.changes} <= set(marked())


def test_the_document_is_what_the_program_does(seen):
    assert DOCUMENT.read_text("utf-8") == document(seen), "run `make changes`"


def test_a_dry_run_changes_no_byte_and_shows_the_plan(seen):
    for row in seen:
        assert row.dry.changed == [], row.case.line
        if row.how is Changes.RUNS:
            assert row.dry.code == 2, row.case.line
            assert "no dry run" in row.dry.err, row.case.line
        else:
            assert row.dry.code == 0, row.case.line
            assert row.dry.out or row.case.outside
    for row in asking(seen):
        assert "dry run: nothing was changed" in row.dry.err, row.case.line


def test_without_a_terminal_and_consent_it_shows_the_plan_and_exits_with_7(seen):
    for row in asking(seen):
        assert (row.refused.code, row.refused.changed) == (7, []), row.case.line
        assert timeless(row.refused.out) == timeless(row.dry.out), row.case.line
        assert "nothing was changed: no terminal to ask on; add " in row.refused.err


def test_on_a_terminal_the_plan_comes_before_the_question(seen):
    for row in asking(seen):
        for shown in (row.answered_no, row.answered_yes):
            mark = "[y/N] " if row.case.name is None else f"Type {row.case.name} to go on: "
            before, question, _ = shown.err.partition(mark)
            assert question, row.case.line
            columns = row.dry.out.split("\n")[0].split("\t")
            headings = before.upper().split()
            assert any(name.upper() in headings for name in columns), row.case.line
        assert (row.answered_no.code, row.answered_no.changed) == (7, []), row.case.line
        assert row.answered_yes.code == 0, row.case.line
        assert row.answered_yes.changed, row.case.line


def test_yes_applies_it_and_a_name_is_needed_where_things_are_destroyed(seen):
    for row in seen:
        if row.done is not None:
            assert row.done.code == 0, (row.case.line, row.done.err)
            assert row.done.changed, row.case.line
        if row.case.name is not None:
            assert (row.unnamed.code, row.unnamed.changed) == (7, []), row.case.line


def test_standard_output_has_one_table(seen):
    for row in seen:
        if row.done is not None and row.done.out:  # as JSON: one value
            value, end = json.JSONDecoder().raw_decode(row.done.out)
            assert value, row.case.line
            assert row.done.out[end:].strip() == "", row.case.line
        for shown in (row.dry, row.refused, row.answered_no, row.answered_yes):
            lines = shown.out.split("\n")[:-1] if shown is not None else []
            assert len({line.count("\t") for line in lines}) <= 1, row.case.line
            assert lines.count(lines[0]) == 1 if lines else True, row.case.line


def test_the_journal_has_who_and_why(seen):
    for row in asking(seen):
        if not row.case.outside:
            assert row.journal, row.case.line
            for entry in row.journal:
                assert row.case.line.startswith(entry["command"]), row.case.line
                assert entry["reason"] == "why", row.case.line
                assert entry["user"]


def test_undo_brings_back_what_was_there(seen):
    for row in seen:
        assert row.undone is bool(row.case.undo), row.case.line
    assert sum(row.undone for row in seen) >= 7


def test_a_change_outside_leaves_the_store_as_it_is(seen):
    for row in seen:
        if row.case.outside:
            assert not [path for path in row.done.changed if path.startswith("s/")], row.case.line


class Nothing(Change):
    """A change of nothing."""

    def apply(self, note):
        """Do nothing."""
        return Outcome(())


def test_a_command_without_the_mark_cannot_run_a_change():
    from rmqctl.cli.change_steps import run_change
    from rmqctl.cli.context import Cli

    cli = Cli({})
    cli.changes = None
    with pytest.raises(AssertionError, match="mark"):
        run_change(cli, Nothing(tuple, []))
