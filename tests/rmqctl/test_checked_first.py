"""What shapes the rows is checked before anything is done: an error changes nothing."""

import os
import time

import pytest

from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.every_command import CALLS, Call
from tests.support.rich_store import make_rich_store

ENDLESS = (
    Call("lag watch"),
    Call("lag warmup"),
    Call("message export"),
    Call("message export -- --save {new}"),
)
"""Commands with rows that have no call among those that print them and end."""
SETTINGS = "[contexts.prod]\ntz = 'UTC'\n"


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    place = tmp_path_factory.mktemp("rich")
    made = make_rich_store(place / "s", time.time_ns() // 1_000_000 - 600_000)
    (place / "settings.toml").write_text(SETTINGS)
    exported = run("message", "export", "-t", "orders", "-S", made.root)
    (place / "exported.jsonl").write_bytes(exported.raw)
    snapshot = place / "snapshot"
    assert run("store", "snapshot", "--save", snapshot, "--copy", "-S", made.root).code == 0
    copy_store(snapshot, place / "other")
    for name in ("snapshot", "other", "new"):
        made.words[name] = str(place / name)
    return made


@pytest.fixture
def place(rich, own_home, monkeypatch):
    """The folder of the store and the settings: everything that a call could change."""
    monkeypatch.setenv("RMQCTL_STORE", str(rich.root))
    monkeypatch.setenv("RMQCTL_CONFIG", str(rich.root.parent / "settings.toml"))
    return rich.root.parent


def state(*folders):
    """All files with what changes when they are written to."""
    found = {}
    for top in folders:
        for folder, folders_within, files in os.walk(top):
            for name in (*folders_within, *files):
                path = f"{folder}/{name}"
                facts = os.stat(path)  # noqa: PTH116 - thousands of files
                found[path] = facts.st_ino, facts.st_size, name in files and facts.st_mtime_ns
    return found


def refused(rich, place, call, *options):
    """What a call says that must not do anything."""
    words = call.words(rich.words)
    at = words.index("--") if "--" in words else len(words)
    words[at:at] = options
    before = state(place, place.parent / "home")
    result = run(*words, stdin=call.stdin)
    assert state(place, place.parent / "home") == before, "something was changed"
    assert (result.code, result.out) == (2, ""), result.err
    return result.err


WITHOUT_ROW_OPTIONS = {"produce", "message import"}
"""Commands whose rows are of what they did: they refuse each of the options by its name."""


FIRST_CALLS = list({call.command: call for call in reversed([*CALLS, *ENDLESS])}.values())


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            call,
            id=call.line,
            marks=() if call in FIRST_CALLS[::2] else pytest.mark.long,
        )
        for call in [*CALLS, *ENDLESS]
    ],
)
@pytest.mark.slow
def test_what_rows_do_not_have_is_told_before_anything_is_done(rich, place, call):
    for option, value in (("--columns", "nosuch"), ("--sort", "-nosuch"), ("--where", "nosuch=1")):
        said = refused(rich, place, call, option, value)
        assert said.startswith(f"rmqctl: {option}"), said
        refuses_all = option == "--where" and call.command in WITHOUT_ROW_OPTIONS
        assert ("is for rows" if refuses_all else "nosuch") in said


CHANGES = [
    call
    for call in CALLS
    if call.command in {"topic create", "group create", "store init", "config set", "context add"}
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CHANGES, ids=lambda call: call.line)
def test_so_are_a_limit_a_format_and_a_zone(rich, place, call, monkeypatch):
    assert "'few' is not a number" in refused(rich, place, call, "--limit", "few")
    assert "'xml' is not a format" in refused(rich, place, call, "-o", "xml")
    assert "--tz" in refused(rich, place, call, "--tz", "Nowhere/At/All")


@pytest.mark.slow
def test_a_format_of_the_surroundings_is_checked_as_early(rich, place, monkeypatch):
    monkeypatch.setenv("RMQCTL_OUTPUT", "xml")
    create = Call("topic create -- made")
    assert "'xml' is not a format" in refused(rich, place, create)


def test_a_zone_of_the_surroundings_is_not_called_an_option(rich, place, monkeypatch):
    monkeypatch.setenv("RMQCTL_TZ", "Nowhere/At/All")
    sentence = refused(rich, place, Call("topic create -- made"))
    assert "variable RMQCTL_TZ: " in sentence
    assert "--tz" not in sentence


def test_a_command_of_mqadmin_is_checked_as_what_it_becomes(rich, place):
    create = Call("mqadmin -- updateTopic -t made")
    assert "--columns: 'nosuch'" in refused(rich, place, create, "--columns", "nosuch")
    assert run("mqadmin", "topicList", "--columns", "topic", "-o", "csv").lines[0] == "topic"


def test_a_wrong_setting_can_be_put_right(own_home):
    file = own_home / "rmqctl" / "config.toml"
    file.parent.mkdir()
    file.write_text("output = 'xml'\n")
    assert run("config", "set", "output", "json").code == 0
    assert "xml" not in file.read_text()


@pytest.mark.parametrize(
    "args",
    [
        ("store", "dump", "0", "--as", "hex", "--columns", "bytes"),
        ("lag", "show", "--by", "queue", "--columns", "queue_id"),
        ("lag", "report", "--engine", "local", "--by", "tag", "-o", "csv", "--columns", "tag"),
        ("message", "search", "all", "--count-only", "--columns", "hits"),
        ("message", "search", "all", "--around", "1", "--columns", "hit"),
        ("message", "stats", "--by", "tag", "--columns", "value"),
        ("config", "show", "--origin", "--columns", "origin"),
        ("offset", "orphans", "--fix", "-n", "--columns", "applied"),
        ("offset", "inspect", "--around", "1,1", "--columns", "body"),
        ("retry", "agenda", "--each", "--columns", "msg_id"),
        ("store", "fsck", "--columns", "severity"),
        ("dlq", "redrive", "readers", "--all", "-n", "--columns", "origin_topic"),
    ],
    ids=" ".join,
)
def test_fields_of_the_rows_that_an_option_asks_for_are_known(place, args):
    result = run(*args)
    assert result.code == 0, result.err
