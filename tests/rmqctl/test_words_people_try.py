"""Words and options of other tools: the error names the command or the option here."""

import pytest

from rmqctl.cli.tree import TREE, CommandGroup
from rmqctl.completion.suggest import BELOW_NOUNS, OPTIONS
from tests.support.cli import run

WORDS = [(noun, word, meant) for noun, of in BELOW_NOUNS.items() for word, meant in of.items()]


@pytest.mark.parametrize(("noun", "word", "meant"), WORDS)
def test_a_word_below_a_noun_names_a_command_that_exists(noun, word, meant):
    result = run(noun, word)
    assert result.code == 2
    assert f"did you mean {meant!r}?" in result.err
    first, *rest = meant.split()
    entry = TREE[first]
    assert not isinstance(entry, CommandGroup) or rest[0] in entry.verbs


def test_a_group_after_lag_is_meant_for_lag_show():
    assert "did you mean 'lag show shipping'?" in run("lag", "shipping").err


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        ("consume t", "--since", "--from"),
        ("consume t", "--until", "--to"),
        ("consume t", "--tail", "--last"),
        ("topic list", "--page", "--limit"),
        ("consume t", "--max-messages", "--count"),
        ("consume t", "--partition", "--queue"),
        ("topic create t", "--partitions", "--queues"),
        ("consume t", "--from-beginning", "--offset start"),
    ],
)
def test_an_option_of_another_tool_names_the_one_here(command, option, meant):
    assert OPTIONS[option] == meant
    result = run(*command.split(), option)
    assert result.code == 2
    assert f"the option is {meant} here" in result.err


def test_p_of_topic_create_is_no_number_of_queues(store):
    assert "--queues sets the number of queues" in run("topic", "create", "t", "-p", "3").err


def test_n_is_no_number():
    assert "-n is --dry-run, and --limit N" in run("topic", "list", "-n", "5").err


def test_a_bare_word_is_the_group_or_the_topic(store):
    run("produce", "orders", "-q", "-k", "a", stdin=b"x\n")
    run("produce", "other", "-q", "-k", "a", stdin=b"y\n")
    run("consume", "orders", "-g", "billing", "-e", "-q")
    run("consume", "other", "-g", "audit", "-e", "-q")
    for bare, by_option in (
        (("offset", "list", "billing"), ("offset", "list", "-g", "billing")),
        (
            ("message", "query", "orders", "-k", "a"),
            ("message", "query", "-t", "orders", "-k", "a"),
        ),
        (("message", "export", "orders"), ("message", "export", "-t", "orders")),
    ):
        result = run(*bare)
        assert result.code == 0, result.err
        assert (
            result.out
            == run(*by_option).out
            != run(*[w for w in bare if w not in {"billing", "orders"}]).out
        )
    assert run("message", "query", "orders", "-t", "other", "-k", "a").code == 2
