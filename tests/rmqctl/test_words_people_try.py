"""Words and options of other tools: the error names the command or the option here."""

import re
from itertools import chain

import pytest

from rmqctl.cli.lazy import build
from rmqctl.cli.tree import TREE, CommandGroup
from rmqctl.completion.words_of_others import BELOW_NOUNS, MISSING, OPTIONS, OPTIONS_OF, OTHERS
from tests.support.cli import run


def several(meant):
    return (meant,) if isinstance(meant, str) else meant


def entry_of(command):
    """The entry of the words of a command, with its rest; fails where there is no such command."""
    words = command.split()
    entry = TREE[words[0]]
    if isinstance(entry, CommandGroup):
        return entry.verbs[words[1]], words[2:]
    return entry, words[1:]


def options_of(command):
    entry, _ = entry_of(command)
    return {
        name
        for parameter in build("x", entry).params
        for name in [*parameter.opts, *parameter.secondary_opts]
    }


@pytest.mark.slow
def test_every_command_that_is_named_exists_and_has_the_options_that_are_named():
    tables = [OTHERS, *BELOW_NOUNS.values()]
    for command in {one for of in tables for meant in of.values() for one in several(meant)}:
        for part in re.split(r" \| rmqctl ", command):
            _, rest = entry_of(part)
            given = {word for word in rest if re.fullmatch(r"--?[A-Za-z][\w-]*", word)}
            assert not given - options_of(part) - {"-1h"}, command


@pytest.mark.slow
@pytest.mark.parametrize("noun", BELOW_NOUNS)
def test_a_word_below_a_noun_names_a_command(noun):
    for word, meant in BELOW_NOUNS[noun].items():
        entry = TREE[noun]
        assert isinstance(entry, CommandGroup)
        assert word not in entry.verbs, f"{word} is a command of {noun}"
        result = run(noun, word)
        assert result.code == 2
        assert f"did you mean {' or '.join(map(repr, several(meant)))}?" in result.err


@pytest.mark.slow
def test_a_word_at_the_top_names_a_command():
    for word, meant in OTHERS.items():
        assert word not in TREE
        result = run(word)
        assert result.code == 2
        assert "did you mean " in result.err
        assert all(repr(one) in result.err for one in several(meant)), word


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("get topics", "topic list"),
        ("get topics -o json", "topic list"),
        ("get topic orders", "topic describe orders"),
        ("describe group billing", "group describe billing"),
        ("delete topic t", "topic delete t"),
        ("create topic t --partitions 3", "topic create t"),
        ("pause group billing", "group alter GROUP --no-consume-enable"),
        ("check lag billing", "lag check billing"),
        ("watch lag", "lag watch"),
        ("get offsets", "offset list"),
    ],
)
def test_kubectl_names_the_verb_first(words, meant):
    assert f"did you mean {meant!r}?" in run(*words.split()).err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("duplicate-finder", ""),
        ("latency", "bench both"),
        ("nagios", "lag check"),
        ("skew", "explain skew"),
        ("group skip-message", "offset reset -g GROUP -t TOPIC:QUEUE --shift-by 1"),
        ("store sanitise", "store carve OUT"),
        ("topic duplicate", "message stats"),
        ("lag trends", "lag show --compare -1h"),
        ("store expiry", "store clean"),
        ("yaml", ""),
        ("expired", "store clean"),
        ("topic busy", ""),
        ("store damaged", "store"),
        ("regular", "message search --regex"),
    ],
)
def test_a_word_of_no_table_is_sought_in_tasks_and_help(words, meant):
    err = run(*words.split()).err
    assert ("did you mean" in err) == bool(meant)
    assert not meant or f"did you mean {meant!r}"[:-1] in err.replace('"', "'")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["prune2", "store dfx", "topic usages-of-all", "message quoth", "explains-nothing"]
)
def test_a_word_that_is_like_no_command_has_no_hint(words):
    assert "did you mean 'pro" not in run(*words.split()).err


@pytest.mark.slow
def test_a_bare_name_below_a_noun_is_shown_if_it_exists(store):
    run("produce", "orders", "-q", stdin=b"x\n")
    run("consume", "orders", "-g", "shipping", "-e", "-q")
    assert "did you mean 'group describe shipping'?" in run("group", "shipping").err
    assert "did you mean 'topic describe orders'?" in run("topic", "orders").err
    assert "did you mean 'offset list shipping'?" in run("offset", "shipping").err
    assert "did you mean" not in run("group", "quuxquux").err
    assert "did you mean 'lag show shipping'?" in run("lag", "shipping").err
    assert "; there are show, report," in run("lag", "quuxquux").err
    assert "did you mean 'message search order-4711'?" in run("message", "order-4711").err


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
    assert meant in several(OPTIONS[option])
    result = run(*command.split(), option)
    assert result.code == 2
    assert f"the option is {meant} here" in result.err
    assert "Possible" not in result.err


def test_every_option_that_is_named_is_one_of_some_command():
    every = set(
        chain.from_iterable(
            options_of(f"{noun} {verb}" if isinstance(entry, CommandGroup) else noun)
            for noun, entry in TREE.items()
            for verb in (entry.verbs if isinstance(entry, CommandGroup) else [""])
        )
    )
    for meant in OPTIONS.values():
        for one in several(meant):
            assert one.split()[0] in every, one


@pytest.mark.parametrize("command", [command for command in OPTIONS_OF if command])
def test_an_option_of_one_command_has_its_sentence(command):
    known = options_of(command)
    for option, sentence in OPTIONS_OF[command].items():
        assert option not in known, f"{command} has {option}"
        assert f"; {sentence}" in run(*command.split(), "x", option, "3").err
        found = re.match(r"the option is (--[\w-]+)", sentence)
        assert found is None or found[1] in known


def test_an_option_before_the_command_of_a_noun_names_the_commands_that_have_it():
    hint = "name the command first: 'bench produce' or 'bench both'"
    assert hint in run("bench", "--rate", "5").err
    assert "where the volume of the container is mounted" in run("--container", "x").err


@pytest.mark.parametrize("command", MISSING)
def test_a_missing_argument_says_where_its_values_are_found(command, store):
    needed = {"dlq show": ["g"], "retry show": ["g"], "store diff": ["a"]}.get(command, [])
    assert f"; {MISSING[command]}" in run(*command.split(), *needed).err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("consume t -f -o json", "-f takes a template, and -F follows"),
        ("consume t -q 3", "-q is --quiet, and -Q N is a queue"),
        ("topic list -o name", "-o tsv --no-headers --columns FIELD"),
        ("topic list -o jsonpath={.items}", "-o tsv --no-headers --columns FIELD"),
        ("consume t -o beginning", "--offset start"),
        ("consume t -o latest", "--offset end"),
        ("topic list -S a -S b", "compare two with 'store diff A B'"),
        ("store tail orders", "--where 'topic = NAME'"),
        ("topic list -S docker://rmq", "a store is a folder"),
        ("offset undo last", "the last change is --last"),
        ("config set fileReservedTime 12", "'rmqctl broker config' has the settings of a store"),
        ("consume t -e --where body.country=DE", "--json-path 'country = DE' is for JSON bodies"),
        ("topic list -o=json", "a short option has no =: -o json"),
        ("message export t --mask email", "the field of a JSON body: json.email=hash"),
        ("message export t --mask $.who.email", "json.who.email=hash"),
        ("store clean --preview", "the option is --dry-run here"),
        ("dlq redrive g --slowly", "such as: rmqctl dlq redrive readers --tag invoice --rate 50/s"),
        ("store du --kinds", "; see --by"),
        ("message stats t --by sender", "did you mean 'host'?"),
        ("message stats t --by body.country", "json.country"),
        ("lag show --columnz a", ": --columnz (Possible options: --color, --columns);"),
        ("consume t -e --format json", "the option is --output json"),
        ("produce t --format csv", "the option is --input csv"),
        ("message kill order-16", "'kill'; there are get, query, search, trace, life, export,"),
        ("audit frobnicate", "'frobnicate'; there are list and show"),
        ("frobnicate", "'frobnicate'; 'rmqctl cheat' lists commands by task"),
        ("help exit codes", "did you mean 'explain exit codes'?"),
        ("help half message", "did you mean 'explain half message'?"),
        ("dlq redrive g k7", "to select by key: -k k7"),
        ("retry now g k7", "to select by key: -k k7"),
        ("retry show g k7", "'retry browse g -k k7' finds a key"),
    ],
)
def test_a_habit_of_another_tool_has_its_sentence(store, words, hint):
    run("produce", "t", "-q", stdin=b"x\n")
    run("consume", "t", "-g", "g", "-e", "-q")
    result = run(*words.split())
    assert result.code in (2, 3)
    assert hint in result.err


def test_a_queue_after_the_topic_is_an_option_of_consume(store):
    run("produce", "orders", "-q", stdin=b"x\n")
    assert "did you mean 'orders' with -Q 3?" in run("consume", "orders:3", "-e").err


def test_a_key_in_the_place_of_an_id_names_the_commands_that_find_keys(store):
    run("produce", "orders", "-q", stdin=b"x\n")
    assert (
        "'message query TOPIC -k order-4711' finds a key" in run("message", "get", "order-4711").err
    )


def test_p_of_topic_create_is_no_number_of_queues(store):
    assert "--queues sets the number of queues" in run("topic", "create", "t", "-p", "3").err


def test_n_is_no_number():
    assert "-n is --dry-run, and --limit N" in run("topic", "list", "-n", "5").err


@pytest.mark.slow
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


def test_a_search_for_a_property_as_a_text_names_the_option(store):
    run("produce", "t", "-q", "-H", "color=red", stdin=b"x\n")
    result = run("message", "search", "color=red")
    assert (result.code, result.raw) == (0, b"") or "color" not in result.out
    assert "for a property: -H 'color=red'" in result.err
    assert "for a property" not in run("message", "search", "red").err
    assert "for a property" not in run("message", "search", "a = b").err
