"""``--help`` is a screen, ``--help --all`` the whole, and no line of either ends inside a word."""

import re
from functools import cache
from typing import Any

import pytest

from rmqctl.cli import lazy, tree
from rmqctl.cli.global_options import NAMES, is_everywhere
from rmqctl.cli.help_text import Example, examples, parts_of
from rmqctl.cli.marks import Changes
from rmqctl.cli.root_help import definitions
from tests.support.cli import run

LEAVES = {
    " ".join(words): leaf
    for name, entry in tree.TREE.items()
    for words, leaf in (
        [([name], entry)]
        if isinstance(entry, tree.CommandRef)
        else [([name, verb], leaf) for verb, leaf in entry.verbs.items()]
    )
}
NOUNS = [name for name, entry in tree.TREE.items() if isinstance(entry, tree.CommandGroup)]
COMMANDS: dict[str, Any] = {
    name: lazy.build(name.split()[-1], leaf) for name, leaf in LEAVES.items()
}


@cache
def help_of(*words, columns=80):
    result = run(*words, "--help", env={"COLUMNS": str(columns)})
    assert (result.code, result.err) == (0, "")
    return result


def options_in(text):
    """The names in the first column of the options."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", "\n".join(_first_columns(text))))


def _first_columns(text):
    for line in text.partition("\nOptions:\n")[2].splitlines():
        if line.startswith("  -"):
            yield re.split(r"\s{2,}", line.strip())[0]


@pytest.mark.parametrize("name", [*LEAVES, *NOUNS, ""])
def test_help_fits_a_screen(name):
    shown = help_of(*name.split())
    assert len(shown.lines) <= (24 if name else 40)
    assert max(map(len, shown.lines)) <= 80
    assert shown.lines[0].startswith(f"Usage: rmqctl {name}".rstrip())
    assert "\nMore: rmqctl" in shown.out


@pytest.mark.parametrize("name", LEAVES)
def test_help_has_a_sentence_up_to_three_examples_and_the_options_most_used(name):
    lines = help_of(*name.split()).lines
    assert lines[1] == ""
    assert lines[2].startswith("  ")
    where = lines.index("Examples:")
    block = lines[where + 1 : lines.index("", where)]
    assert 1 <= "\n".join(block).count("rmqctl ") <= 6  # a pipe has two
    assert lines[-1] == f"More: rmqctl {name} --help --all"


@pytest.mark.parametrize("name", [*LEAVES, *NOUNS, ""])
def test_the_whole_help_breaks_no_word_at_80_columns(name):
    narrow, wide = (help_of(*name.split(), "--all", columns=columns).out for columns in (80, 100))
    assert max(map(len, narrow.splitlines())) <= 80
    assert max(map(len, wide.splitlines())) <= 100
    assert words_in(narrow) == words_in(wide)


def words_in(text):
    return sorted(word for word in text.split() if word != "\\")


@pytest.mark.parametrize("name", LEAVES)
def test_the_whole_help_has_every_option_of_its_own(name):
    shown = help_of(*name.split(), "--all").out
    for parameter in COMMANDS[name].params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        if not is_everywhere(parameter):
            for word in parameter.opts if parameter.param_type_name == "option" else ():
                assert word in shown
    assert f"Usage: rmqctl {name} " in shown
    assert "Global options (see rmqctl --help --all):" in shown


@pytest.mark.parametrize("name", LEAVES)
def test_options_that_are_marked_as_most_used_exist_and_are_shown(name):
    command = COMMANDS[name]
    known = {option for p in command.params for option in p.opts}
    assert set(command.most_used or ()) <= known
    assert set(command.most_used or ()) <= options_in(help_of(*name.split()).out)


@pytest.mark.slow
def test_options_without_an_effect_are_not_shown():
    for name, command in COMMANDS.items():
        if command.passes_options:
            continue
        for words in ((), ("--all",)):
            shown = help_of(*name.split(), *words).out
            own = {o for p in command.params if not is_everywhere(p) for o in p.opts}
            for option, effect in {
                "--yes": command.changes is Changes.ASKS,
                "--dry-run": command.changes in {Changes.ASKS, Changes.PLANS},
                "--output": bool(command.row_types),
                "--store": command.uses_store,
            }.items():
                if option not in own:
                    named = re.search(rf"(?m)^(  |.*/){option}\b|^  -\w, {option}\b", shown)
                    assert bool(named) is effect, (name, option)
    assert "--columns" not in run("man", "--help", "--all").out


def test_they_are_accepted_all_the_same():
    assert run("version", "-n", "-y", "-S", "x", "-o", "json").code == 0
    assert {"yes", "dry_run", "store"} <= NAMES


def test_the_words_all_and_help_may_come_in_any_order_and_only_together():
    whole = run("store", "info", "--help", "--all").out
    assert run("store", "info", "--all", "-h").out == whole
    assert run("help", "store", "info", "--all").out == whole
    assert run("store", "help", "info", "--all").out == whole
    assert (
        run("topic", "list", "--all", "--help").out == run("topic", "list", "--help", "--all").out
    )
    result = run("store", "info", "--all")
    assert (result.code, result.raw) == (2, b"")
    assert "no such option" in result.err
    assert run("store", "--all", "info").code == 2
    assert run("--all").code == 2


def test_the_root_has_its_options_with_all():
    for words in (["--help", "--all"], ["--all", "--help"], ["help", "--all"]):
        assert "--columns A,B" in run(*words).out
    assert "--columns" not in run("--help").out
    assert run().out == run("--help").out


def test_values_are_no_words_of_the_help(store):
    run("topic", "create", "t", "--queues", 1)
    assert run("produce", "t", "-k", "--all", stdin=b"x\n").code == 0
    [row] = run("consume", "t", "-e", "-o", "jsonl", "--key=--all").lines
    assert '"--all"' in row


def test_examples_are_read_off_docstrings():
    text = "One.\n\nA:   rmqctl a\nB, piped:   rmqctl b |\n  rmqctl c\nBelow:\n  rmqctl d\n\nTwo."
    assert parts_of(text) == [
        "One.",
        (
            Example("A:", ("rmqctl a",)),
            Example("B, piped:", ("rmqctl b |", "rmqctl c")),
            Example("Below:", ("rmqctl d",)),
        ),
        "Two.",
    ]


def test_commands_that_are_too_long_are_continued_between_words():
    block = [Example("Long:", ("rmqctl consume 'a b c d' --one 1",)), Example("A:", ("rmqctl a",))]
    assert examples(block, 30) == [
        "  Long:",
        "      rmqctl consume \\",
        "          'a b c d' --one 1",
        "  A:      rmqctl a",
    ]


def test_definitions_are_filled_at_blanks():
    rows = [("--a", "well-known words --x-y z"), ("--a-name-that-is-longer-than-most", "x")]
    assert definitions(rows, 22) == [
        "  --a  well-known",
        "       words --x-y z",
        "  --a-name-that-is-longer-than-most",
        "       x",
    ]
