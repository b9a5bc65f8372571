"""The store of a command: the typed one, at any position, and no other.

The commands are those of the tree: a new one is in these tests by having a line in
``tests.support.every_command``, which another test demands.
"""

import hashlib
import io
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rmqctl.cli import lazy
from rmqctl.cli.context import Cli
from rmqctl.cli.tree import TREE, CommandRef
from rmqctl.errors import Refused
from rmqctl.help.mqadmin.translate import COMMANDS
from storage.config import SMALL_STORE
from storage.store import MessageStore
from tests.rmqctl.help.test_mqadmin import OFFLINE, words_of
from tests.support.cli import limited, run
from tests.support.every_command import CALLS
from tests.support.examples import one_in
from tests.support.parsing import parsed

WITHOUT_CALL = (
    *("broker start", "completion bash", "lag check", "lag record lag.jsonl"),
    *("lag watch", "lag warmup", "man", "console"),
)
OF_SETTINGS = ("config", "context")


class Words(dict[str, str]):
    """A word for each place that a call leaves open."""

    def __missing__(self, name: str) -> str:
        return f"some-{name}"


def lines():
    """A line of each command: those of the tree, and the old names."""
    found = {call.command: call.words(Words()) for call in CALLS}
    found |= {line.removesuffix(" lag.jsonl"): line.split() for line in WITHOUT_CALL}
    found["message export"] = ["message", "export", "-t", "t"]
    return found


LINES = lines()


def paths_of_the_tree():
    for name, entry in TREE.items():
        if isinstance(entry, CommandRef):
            yield name
        else:
            yield from (f"{name} {verb}" for verb in entry.verbs)


def test_each_command_of_the_tree_has_a_line():
    assert set(paths_of_the_tree()) <= {*LINES, "completion"}


@pytest.fixture
def named(tmp_path):
    """The names of the store that is meant and of the one that a variable names."""
    (tmp_path / "file.toml").write_text('store = "test"\ntz = "Asia/Tokyo"\noutput = "jsonl"\n')
    config = tmp_path / "home" / "rmqctl"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(
        f'context = "prod"\n[contexts.test]\nstore = "{tmp_path}/test"\ncolor = "always"\n'
        f'[contexts.prod]\nstore = "{tmp_path}/prod"\n'
    )
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with a topic and a group, to be copied."""
    root = tmp_path_factory.mktemp("made") / "s"
    MessageStore.create(root, SMALL_STORE)
    run("produce", "t", "-q", "-S", root, stdin=b"a\nb\n")
    run("consume", "t", "-g", "g", "-e", "-q", "-S", root)
    return root


@pytest.fixture
def stores(named, made):
    """Both stores."""
    for name in ("test", "prod"):
        subprocess.run(["cp", "-r", "--sparse=always", made, named / name], check=True)
    return named


def fingerprint(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.md5(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def ways(stores: Path) -> list[list[str]]:
    return [
        ["-S", f"{stores}/test"],
        [f"-S{stores}/test"],
        [f"--store={stores}/test"],
        ["--context", "test"],
        ["--context=test"],
        ["--config", f"{stores}/file.toml"],
        [f"--config={stores}/file.toml"],
    ]


def placed(words: list[str], option: list[str], *, first: bool) -> list[str]:
    """The words with an option before the command's name, or after everything but ``--``."""
    if first:
        return [*option, *words]
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *option, *words[at:]]


BEFORE_AND_AFTER = pytest.mark.parametrize(
    "first",
    [
        pytest.param(True, id="before"),
        pytest.param(False, id="after", marks=pytest.mark.long),
    ],
)
"""Where the option stands: before the command, or after it."""


@BEFORE_AND_AFTER
@pytest.mark.parametrize("command", one_in(3, sorted(LINES)))
def test_what_is_typed_beats_the_environment(named, command, first):
    if command == "mqadmin" and not first:
        return  # words after it belong to the old name: see below
    for option in ways(named):
        for variables in ({"RMQCTL_STORE": f"{named}/prod"}, {"RMQCTL_CONTEXT": "prod"}):
            environ = {"XDG_CONFIG_HOME": f"{named}/home", "XDG_CONFIG_DIRS": "", **variables}
            cli = Cli(environ)
            _ = cli.store, cli.settings.layers(), cli.zone  # read before the words are known
            parsed(placed(LINES[command], option, first=first), cli)
            assert cli.store.path == named / "test", (option, variables)


@BEFORE_AND_AFTER
@pytest.mark.parametrize("name", one_in(2, OFFLINE))
@pytest.mark.slow
def test_an_old_name_works_on_the_store_that_it_prints(stores, monkeypatch, name, first):
    monkeypatch.setenv("RMQCTL_STORE", f"{stores}/prod")
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{stores}/home")
    before = fingerprint(stores / "prod")
    values = ["t" if word == "x" else word for word in words_of(name, everything=False)]
    option = ways(stores)[(OFFLINE.index(name) + first) % 7]

    def printed(result):
        return [line for line in result.err.splitlines() if line.startswith("rmqctl ")]

    def old(limit):
        words = [name, *values, "--yes", "--timeout", limit]
        given = [*option, "mqadmin", *words] if first else ["mqadmin", *words, *option]
        return run(*given, stdin=b"")

    result = limited(old, printed)
    assert printed(result), result.err
    for line in printed(result):
        cli = Cli({"XDG_CONFIG_HOME": f"{stores}/home", "XDG_CONFIG_DIRS": f"{stores}/none"})
        parsed(shlex.split(line)[1:], cli)
        assert cli.store.path == stores / "test", line
    assert fingerprint(stores / "prod") == before


@pytest.mark.slow
def test_delete_topic_of_mqadmin_deletes_where_it_says(stores, monkeypatch):
    monkeypatch.setenv("RMQCTL_STORE", f"{stores}/prod")
    result = run("mqadmin", "deleteTopic", "-t", "t", "-S", stores / "test", "--confirm", "t", "-y")
    assert result.code == 0, result.err
    assert f"store {stores}/test (option --store)" in result.err
    assert "t" not in [
        row["topic"] for row in run("topic", "list", "-S", stores / "test", "-o", "json").json()
    ]
    assert "t" in [row["topic"] for row in run("topic", "list", "-o", "json").json()]


@pytest.mark.parametrize("command", sorted(set(LINES) - {"lag report", "console"}))
def test_two_stores_are_refused(named, command):
    words = LINES[command]
    result = run("-S", named / "test", *placed(words, ["-S", f"{named}/prod"], first=False))
    if command == "mqadmin":
        result = run("-S", named / "test", "mqadmin", "topicList", "-S", f"{named}/prod")
    assert f"--store {named}/test and --store {named}/prod name different stores" in result.err
    assert result.code == (3 if command == "lag check" else 2)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["context", "config"])
def test_two_contexts_or_files_are_refused(stores, option):
    result = run(f"--{option}", "a", "topic", "delete", "t", f"--{option}", "b", "-n")
    assert result.code == 2
    assert f"--{option} a and --{option} b name two targets" in result.err
    names = ("test", "prod") if option == "context" else (stores / "file.toml", stores / "b.toml")
    (stores / "b.toml").touch()
    old = run(
        f"--{option}", names[0], "mqadmin", "deleteTopic", "-t", "t", f"--{option}={names[1]}"
    )
    assert (old.code, "name two targets" in old.err) == (2, True), old.err


def test_the_same_store_may_be_typed_twice(stores, monkeypatch):
    monkeypatch.chdir(stores)
    result = run("-S", "test", "topic", "list", "-S", stores / "test")
    assert result.code == 0, result.err


def test_typed_then_variable_then_context_then_file_then_default(named, monkeypatch):
    """One setting after another is taken away, the strongest first, for each setting."""
    home = named / "home" / "rmqctl" / "config.toml"
    values = {"tz": "UTC", "output": "json", "color": "always", "progress": "plain"}
    for name, value in values.items():
        home.write_text(
            f'context = "one"\n{name} = "file"\n[contexts.one]\n{name} = "context"\n'
            f'[contexts.two]\n{name} = "typed context"\n'
        )
        other = named / "typed.toml"
        other.write_text(f'{name} = "typed file"\n[contexts.two]\n{name} = "its context"\n')
        environ = {"XDG_CONFIG_HOME": f"{named}/home", "XDG_CONFIG_DIRS": f"{named}/none"}
        variable = {f"RMQCTL_{name.upper()}": "variable"}
        found = []
        for typed, more in (
            ({name: value, "context": "two"}, variable),
            ({"context": "two"}, variable),
            ({"config": str(other), "context": "two"}, variable),
            ({"config": str(other)}, {**variable, "RMQCTL_CONTEXT": "two"}),
            ({}, variable),
            ({}, {"RMQCTL_CONTEXT": "two"}),
            ({}, {}),
        ):
            cli = Cli({**environ, **more})
            for option, text in typed.items():
                cli.remember(option, text)
            held = cli.settings.get(name)
            assert held is not None
            found.append(held.value)
            assert held.origin
        assert found == [
            value,
            "typed context",
            "its context",
            "typed file",
            "variable",
            "typed context",
            "context",
        ]


@pytest.mark.parametrize(
    ("variables", "said", "coloured"),
    [
        ({}, "always", True),
        ({"NO_COLOR": "1"}, "always", False),
        ({"FORCE_COLOR": "1"}, "never", True),
        ({"RMQCTL_COLOR": "always", "NO_COLOR": "1"}, "never", True),
    ],
)
def test_colour_of_the_environment_beats_the_files(named, variables, said, coloured):
    home = named / "home" / "rmqctl" / "config.toml"
    home.write_text(f'color = "{said}"\n')
    cli = Cli({"XDG_CONFIG_HOME": f"{named}/home", **variables})
    assert cli.colored(io.StringIO()) is coloured
    home.write_text(f'[contexts.c]\ncolor = "{said}"\n')
    typed = Cli({"XDG_CONFIG_HOME": f"{named}/home", **variables})
    typed.remember("context", "c")
    assert typed.colored(io.StringIO()) is (said == "always")


def test_sources_are_named(stores, monkeypatch):
    monkeypatch.setenv("RMQCTL_STORE", f"{stores}/prod")
    monkeypatch.setenv("NO_COLOR", "1")
    typed = ("--config", stores / "file.toml")
    rows = {row["setting"]: row for row in run(*typed, "config", "show", "-o", "json").json()}
    assert rows["store"]["value"] == f"{stores}/test"
    assert rows["store"]["origin"] == rows["tz"]["origin"] == f"{stores}/file.toml"
    assert rows["output"]["origin"] == "option --output"
    assert (rows["color"]["value"], rows["color"]["origin"]) == ("never", "variable NO_COLOR")
    checks = [row["found"] for row in run(*typed, "doctor", "-o", "json").json()]
    assert f"tz = Asia/Tokyo ({stores}/file.toml)" in checks
    assert "color = never (variable NO_COLOR)" in checks
    assert any(found.startswith(f"{stores}/test ({stores}/file.toml)") for found in checks)


@pytest.mark.parametrize(
    "line",
    [
        "topic create u -n",
        "topic alter t --perm 4 -n",
        "topic delete t -n",
        "group create h -n",
        "group alter g --retry-max-times 3 -n",
        "group delete g -n",
        "offset reset -g g -t t --to-earliest",
        "offset delete -g g -t t -n",
        "resetOffsetByTime -g g -t t -s -1h -n",
        "broker config set fileReservedTime 24 -n",
        "mqadmin deleteTopic -t t --dry-run",
        "mqadmin deleteSubGroup -g g --dry-run",
    ],
)
def test_a_plan_names_the_store_by_its_absolute_path(stores, monkeypatch, line):
    monkeypatch.chdir(stores)
    result = run(*shlex.split(line), "-S", "test")
    assert f"store {stores}/test (option --store)" in result.err.splitlines()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.slow
@pytest.mark.parametrize("command", ["topic alter t --perm 4", "topic delete t", "group delete g"])
def test_a_question_names_the_store_by_its_absolute_path(stores, monkeypatch, command):
    monkeypatch.chdir(stores)
    cli = Cli({"RMQCTL_STORE": "prod"})
    cli.remember("store", ["test"])
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    with (
        lazy.root().make_context("rmqctl", command.split(), obj=cli) as ctx,
        pytest.raises(Refused),
    ):
        lazy.root().invoke(ctx)
    assert str(stores / "test") in err.getvalue().rsplit("\n", 1)[-1]


def test_the_store_below_is_the_remedy(stores):
    (stores / "parent").mkdir()
    (stores / "test").rename(stores / "parent" / "store")
    result = run("topic", "list", "-S", stores / "parent")
    assert result.code == 3
    assert f"name {stores}/parent/store with --store" in result.err
    assert "store init" not in result.err
    (stores / "full").mkdir()
    (stores / "full" / "note").touch()
    assert "store init" not in run("topic", "list", "-S", stores / "full").err


def test_a_variable_that_switches_something_off_switches_it_off(stores, monkeypatch):
    monkeypatch.setenv("RMQCTL_YES", "1")
    monkeypatch.setenv("RMQCTL_DEBUG", "0")
    result = run("offset", "reset", "-g", "g", "-t", "t", "--to-earliest", "-S", stores / "test")
    assert "add --yes" in result.err, "consent is typed"
    assert not Cli({"RMQCTL_DEBUG": "0"}).flag("debug")


def test_all_old_names_are_here():
    assert set(OFFLINE) <= set(COMMANDS)
