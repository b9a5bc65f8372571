"""A topic or a group may be a word or an option, in every command that takes one."""

import pytest
from typer.core import TyperOption

from rmqctl.cli import lazy
from rmqctl.cli.context import Cli
from rmqctl.cli.tree import TREE
from rmqctl.completion.completion import possibilities
from tests.support.cli import run

OPTIONS = {"topic": ("--topic", "-t"), "group": ("--group", "-g")}
OPTION_ONLY = {
    "store fsck": "a folder would be taken for a topic",
    "store diff": "a third folder would be taken for a topic",
    "offset diff": "a third side would be taken for a group",
}
"""Commands that take a topic or a group as an option only, and why."""

COMMANDS = {
    f"{noun} {verb}".strip(): leaf
    for noun, entry in TREE.items()
    for verb, leaf in getattr(entry, "verbs", {"": entry}).items()
}


def built(name):
    return lazy.build(name.split()[-1], COMMANDS[name])


def arguments(command):
    return [p for p in command.params if not isinstance(p, TyperOption)]


def names_a(kind, argument):
    return kind.upper() in str(argument.metavar) and argument.name != "sheet"


def has_option(command, kind):
    return any(OPTIONS[kind][0] in p.opts for p in command.params if isinstance(p, TyperOption))


def has_argument(command, kind):
    return any(names_a(kind, argument) for argument in arguments(command))


TAKING = {
    name: tuple(
        kind for kind in OPTIONS if has_option(built(name), kind) or has_argument(built(name), kind)
    )
    for name in COMMANDS
}
TAKING = {name: kinds for name, kinds in TAKING.items() if kinds}


def words_of(command, kind, *more):
    """Words for all arguments before the one of a kind, and for the required options."""
    before, after = [], []
    for argument in arguments(command):
        if names_a(kind, argument):
            break
        before.append("queue" if argument.name == "what" else "first")
    for parameter in command.params:
        if isinstance(parameter, TyperOption) and parameter.required:
            after += [parameter.opts[0], "1"]
    for argument in arguments(command)[len(before) + 1 :]:
        after += ["last"] if argument.required else []
    return before, [*after, *more]


def parsed(name, words):
    context = built(name).make_context(name, list(words), obj=Cli({}))
    return {key: tuple(v) if isinstance(v, list) else v for key, v in context.params.items()}


def test_most_commands_are_here():
    assert len(TAKING) > 45
    assert set(OPTION_ONLY) <= set(TAKING)


@pytest.mark.parametrize("name", [name for name in TAKING if name not in OPTION_ONLY])
def test_the_word_and_the_option_are_the_same(name):
    command = built(name)
    bare = [kind for kind in TAKING[name] if has_argument(command, kind)]
    assert len(bare) == 1, "the word is the one name that the noun has"
    (kind,) = bare
    before, after = words_of(command, kind)
    by_word = parsed(name, [*before, "one", *after])
    assert "one" in [v[0] if isinstance(v, tuple) and v else v for v in by_word.values()]
    long, short = OPTIONS[kind]
    for option in ([long, "one"], [short, "one"], [f"{long}=one"], [f"{short}one"]):
        assert parsed(name, [*before, *option, *after]) == by_word, option
        assert parsed(name, [*option, *before, *after]) == by_word, option
        assert parsed(name, [*before, *after, *option]) == by_word, option


@pytest.mark.parametrize("name", [name for name in TAKING if name not in OPTION_ONLY])
def test_one_name_given_in_both_ways_must_be_the_same(name):
    command = built(name)
    kind = next(kind for kind in TAKING[name] if has_argument(command, kind))
    argument = next(a for a in arguments(command) if names_a(kind, a))
    before, after = words_of(command, kind)
    long, _ = OPTIONS[kind]
    if argument.nargs == -1:  # of which there may be several: all are meant, each once
        both = parsed(name, [*before, "one", "two", *after, long, "two", long, "three"])
        assert ("one", "two", "three") in both.values()
        return
    result = run(*name.split(), long, "one", long, "two", *before, *after)
    assert result.code == 2
    assert f"name two {kind}s; give one; see 'rmqctl {name} --help'" in result.err
    if any(other.nargs == -1 for other in arguments(command)):
        result = run(*name.split(), "one", *after, long, "one")
        assert (result.code, f"{kind} one is given twice" in result.err) == (2, True)
        return
    assert parsed(name, [*before, "one", *after, long, "one"]) == parsed(
        name, [*before, "one", *after]
    )
    result = run(*name.split(), *before, "one", *after, long, "two")
    assert result.code == 2
    assert f"one and {long} two name two {kind}s; give one" in result.err


@pytest.mark.parametrize("name", TAKING)
def test_the_help_names_both(name):
    command = built(name)
    for kind in TAKING[name]:
        assert has_option(command, kind)
    assert has_argument(command, "topic") or has_argument(command, "group") or name in OPTION_ONLY


def test_with_the_option_the_words_are_the_rest():
    assert parsed("produce", ["-t", "orders", "a.txt", "b.txt"]) == parsed(
        "produce", ["orders", "a.txt", "b.txt"]
    )
    assert parsed("dlq ack", ["17", "-g", "readers", "18"]) == parsed(
        "dlq ack", ["readers", "17", "18"]
    )
    assert parsed("dlq show", ["-g", "readers", "17"]) == parsed("dlq show", ["readers", "17"])


def test_words_after_two_dashes_stay_words():
    assert parsed("group create", ["--", "-g"])["new_groups"] == ("-g",)
    assert parsed("message search", ["-t", "orders", "--", "-x"])["pattern"] == "-x"
    assert parsed("produce", ["orders", "--key", "--", "--", "-f"])["files"] == ("-f",)


@pytest.mark.parametrize("verb", [("reset", "--to-latest"), ("delete",)])
def test_a_topic_as_a_second_word_is_named(verb):
    result = run("offset", verb[0], "readers", "orders", *verb[1:])
    assert result.code == 2
    assert "name topics with --topic" in result.err
    assert "the word 'orders' is a group" in result.err


def test_a_missing_name_is_missing():
    result = run("dlq", "browse")
    assert (result.code, "missing argument 'GROUP'" in result.err) == (2, True)
    result = run("dlq", "show", "-g", "readers")
    assert (result.code, "missing argument 'ID'" in result.err) == (2, True)


@pytest.fixture
def names(tmp_path, monkeypatch):
    (tmp_path / "consumequeue" / "orders" / "3").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/consumerOffset.json").write_text(
        '{\n\t"offsetTable":{\n\t\t"orders@readers":{0:12\n\t\t}\n\t}\n}'
    )
    monkeypatch.setenv("RMQCTL_STORE", str(tmp_path))


@pytest.mark.parametrize("name", [name for name in TAKING if name not in OPTION_ONLY])
def test_both_are_completed(names, name):
    command = built(name)
    kind = next(kind for kind in TAKING[name] if has_argument(command, kind))
    argument = next(a for a in arguments(command) if names_a(kind, a))
    known = (
        [] if argument.name.startswith("new_") else [{"topic": "orders", "group": "readers"}[kind]]
    )
    before, _ = words_of(command, kind)
    long, short = OPTIONS[kind]
    for words in ([*before, ""], [long, ""], [short, ""], [*before, short, ""]):
        found = [value for value, _ in possibilities([*name.split(), *words])]
        if name in ("dlq redrive", "dlq ack", "retry now", "retry dead") and not found:
            pytest.fail(f"{name} {words}")
        assert found == known, words


def test_a_queue_is_completed_for_the_topic_of_the_option(names):
    assert [v for v, _ in possibilities(["consume", "-t", "orders", "-Q", ""])] == ["3"]


def test_after_the_option_the_next_word_is_completed(names):
    found = [value for value, _ in possibilities(["store", "rebuild", "-t", "orders", ""])]
    assert found == ["queue", "index"]


def test_a_message_by_its_place_has_the_topic_as_a_word(store):
    run("produce", "orders", "-Q", "0", stdin=b"x\n")
    for words in (["orders"], ["-t", "orders"], ["--topic=orders"]):
        result = run("message", "get", *words, "-Q", "0", "-O", "0", "-o", "json")
        assert result.json()["body"] == "x"


def test_a_reset_takes_the_group_as_a_word(store):
    run("produce", "orders", stdin=b"x\n")
    run("consume", "orders", "-g", "readers", "-e")
    result = run("offset", "reset", "readers", "-t", "orders", "--to-earliest", "-n", "-o", "json")
    assert result.code == 0, result.err
    assert {row["group"] for row in result.json()} == {"readers"}
