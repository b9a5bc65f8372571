"""Options that contradict each other are refused, and both are named."""

from types import SimpleNamespace
from typing import Any

import pytest

from rmqctl.cli import lazy
from rmqctl.cli.exclusions import EXCLUSIONS, check_exclusions
from rmqctl.cli.tree import TREE, CommandRef
from rmqctl.errors import UsageProblem
from tests.support.cli import run


def switches():
    """Each flag of the tree that has a negation of its own."""
    for noun, entry in TREE.items():
        leaves = {"": entry} if isinstance(entry, CommandRef) else entry.verbs
        for verb, leaf in leaves.items():
            command: Any = lazy.build(verb or noun, leaf)
            needed = [p for p in command.params if p.required]
            for param in command.params:
                if param.secondary_opts:
                    words = f"{noun} {verb}".split()
                    for one in needed:
                        words += [one.opts[0], "-1h"] if one.opts[0][0] == "-" else ["x"]
                    yield [*words, param.opts[0], param.secondary_opts[0]]


@pytest.mark.parametrize("words", list(switches()), ids=" ".join)
def test_a_flag_and_its_negation(store, words):
    result = run(*words)
    assert result.code == 2, result.err
    assert f"{words[-2]} and {words[-1]} exclude each other" in result.err


VALUES = {
    **dict.fromkeys(("--from", "--to", "--since", "--window", "--older-than", "--delay"), "-1h"),
    "--last": "1",
    "--max-redrives": "1",
    "--queue": "0",
    "--only": "log",
    "--topic": "t",
    "--delay-level": "1",
    "--group": "g",
    "--from-where": "first",
    "--format": "%s",
    "--output": "json",
    "--exec": "true",
    "--delimiter": "x",
    "--ordering-key": "k",
    "--resume": "last",
    "--target": "t",
    "--set-property": "a=b",
    "--set-body": "b",
    "--pipe": "cat",
    "--from-partials": "d",
    "--store": "s",
    "--rate": "9/s",
    "--speed": "2",
    "--around": "2",
}
"""A value for each option of the table that takes one."""
NEEDED = {"message query": ["--key", "k"], "topic delete": ["t"], "message search": ["x"], "*": []}
LEAD = {
    "message import": ["-"],
    "consume": ["t"],
    "produce": ["t"],
    "dlq redrive": ["g"],
    "dlq ack": ["g"],
}


def _words(command, options):
    found = command.split() + LEAD.get(command, []) + NEEDED.get(command, [])
    for option in options:
        found.append(option)
        if option in VALUES and (command, option) != ("store fsck", "--resume"):
            found.append(VALUES[option])
    return found


@pytest.mark.parametrize("pair", EXCLUSIONS, ids=" ".join)
def test_pairs_of_the_table(store, pair):
    command, *options = pair
    named = "topic delete" if command == "*" else command
    for order in (options, options[::-1]):
        result = run(*_words(named, order))
        assert (result.code, result.out) == (2, ""), result.err
        assert f"{options[0]} and {options[1]} exclude each other" in result.err
        assert f"see 'rmqctl {named} --help'" in result.err


@pytest.mark.parametrize(
    "line",
    [
        "consume t --group g --from-where first --offset end",
        "consume t --last 3 --offset 2:9",
        "consume t --follow --offset :end",
        "consume t --group g --broadcast --offset 5",
        "consume t --group g --exec true --body hex",
        "dlq redrive g 17 --resume last",
        "lag report --engine local --by queue -o html",
        "message import - --map-topic a=b --map-topic a=c",
    ],
)
def test_pairs_that_depend_on_a_value(store, line):
    result = run(*line.split())
    assert (result.code, result.out) == (2, "")
    words = line.replace("-o html", "-o-html").replace(" 17 ", " IDs ").split()
    named = [w.replace("-o-html", "-o html") for w in words if w[:2] in {"--", "-o"} or w == "IDs"]
    assert sum(word in result.err for word in named) >= 2, result.err


@pytest.mark.slow
def test_where_a_group_stopped_goes_with_where_a_new_one_begins(store):
    assert run("produce", "t", stdin=b"a\nb\n").code == 0
    words = ("consume", "t", "-g", "g", "-e", "--from-where", "first", "--offset", "stored")
    result = run(*words)
    assert (result.code, sorted(result.lines)) == (0, ["a", "b"]), result.err


def test_a_template_wins_over_a_format_that_was_not_typed(store):
    assert run("produce", "t", stdin=b"a\n").code == 0
    result = run("consume", "t", "-e", "-f", "<%s>", env={"RMQCTL_OUTPUT": "json"})
    assert (result.code, result.out) == (0, "<a>"), result.err


def check(name, typed, words=()):
    option = SimpleNamespace(opts=["--sync"], secondary_opts=["--async"])
    check_exclusions(name, [option], set(typed), list(words))


def test_a_pair_of_one_command_is_none_of_another():
    with pytest.raises(UsageProblem, match="--from and --resume exclude each other"):
        check("store fsck", {"--from", "--resume"})
    check("store rebuild", {"--from", "--resume"})
    check("store fsck", {"--from"})
    with pytest.raises(UsageProblem):
        check("store rebuild", {"--quiet", "--verbose", "--from"})


def test_words_behind_two_dashes_are_no_options():
    with pytest.raises(UsageProblem, match="--sync and --async exclude each other"):
        check("x", (), ["--async", "--sync"])
    check("x", (), ["--async", "--", "--sync"])
    with pytest.raises(UsageProblem):
        check("x", (), ["--async", "--sync", "--"])
