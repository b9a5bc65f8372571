"""Options that contradict each other are refused, and both are named."""

from typing import Any

import pytest

from rmqctl import lazy
from rmqctl.exclusions import EXCLUSIONS
from rmqctl.tree import TREE, Leaf
from tests.support.cli import run


def switches():
    """Each flag of the tree that has a negation of its own."""
    for noun, entry in TREE.items():
        leaves = {"": entry} if isinstance(entry, Leaf) else entry.verbs
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


@pytest.mark.parametrize(
    "line",
    [
        "topic list --quiet --verbose",
        "consume t --exit --follow",
        "lag report --engine local --since -1h --window 1h",
    ],
)
def test_pairs_of_the_table(store, line):
    result = run(*line.split())
    assert result.code == 2
    pairs = [(one, other) for _, one, other in EXCLUSIONS if one in line and other in line]
    assert any(f"{one} and {other} exclude each other" in result.err for one, other in pairs)
