"""Options of rows are refused by a command that has none for them, and named."""

from typing import Any

import pytest

from rmqctl.cli import lazy
from rmqctl.cli.global_options import ROW_OPTIONS
from rmqctl.cli.tree import TREE, CommandRef
from tests.support.cli import run

VALUES = {"columns": "nosuch", "where": "lag > 1000", "sort": "nosuch", "limit": "1"}
WORDS = {"lag record": ["../lag.jsonl"], "man": ["topic"], "completion": ["bash"]}


def commands() -> dict[str, Any]:
    found = {}
    for noun, entry in TREE.items():
        leaves = {"": entry} if isinstance(entry, CommandRef) else entry.verbs
        for verb, leaf in leaves.items():
            found[f"{noun} {verb}".strip()] = lazy.build(verb or noun, leaf)
    return found


COMMANDS = commands()
REFUSED = [(name, option) for name, command in COMMANDS.items() for option in command.refused]


def test_a_command_without_rows_refuses_all_of_them():
    without = {name for name, c in COMMANDS.items() if not c.row_types and not c.passes_options}
    assert {"lag record", "broker start"} < without
    refused = {name: set(COMMANDS[name].refused) for name in without}
    assert refused.pop("console") == {"limit"}, "its first table takes the others"
    for options in refused.values():
        assert options == set(ROW_OPTIONS)


@pytest.mark.parametrize(("name", "option"), REFUSED, ids=" ".join)
def test_what_has_no_effect_is_refused_and_named(store, tmp_path, monkeypatch, name, option):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    words = WORDS.get(name, ["x"] if any(p.required for p in COMMANDS[name].params) else [])
    for line in (
        [*name.split(), *words, f"--{option}", VALUES[option]],
        [f"--{option}", VALUES[option], *name.split(), *words],
    ):
        result = run(*line)
        code = COMMANDS[name].failure_code or 2
        assert (result.code, result.out) == (code, ""), result.err
        assert f"--{option} is for rows" in result.err
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == []


def test_a_format_of_a_script_for_all_of_its_calls_is_no_option_of_rows(store, tmp_path):
    assert run("-o", "json", "lag", "record", tmp_path / "lag.jsonl").code == 0


@pytest.mark.parametrize(("name", "option"), REFUSED, ids=" ".join)
def test_its_help_does_not_have_it(name, option):
    shown = run(*name.split(), "--help", "--all").out.partition("Global options")[2]
    assert "-h/--help" in shown
    assert f"--{option}" not in shown.split()
