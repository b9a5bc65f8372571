"""A mistyped name of a group starts no group."""

import json

import pytest

from tests.support.cli import run


@pytest.fixture
def billing(store):
    """A topic that group billing has read."""
    run("produce", "orders", "-q", stdin=b"a\nb\n")
    run("consume", "orders", "-g", "billing", "-e", "-q")
    return store


def groups(store):
    return {row["group"] for row in run("offset", "list", "-o", "json").json()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "offset reset -t orders --to-earliest --yes",
        "offset reset -t orders --to-earliest -n",
        "resetOffsetByTime -t orders -s now --yes",
        "mqadmin resetOffsetByTime -t orders -s now --yes",
        "offset import progress.csv --yes",
    ],
)
def test_progress_is_not_given_to_an_unknown_group(billing, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "progress.csv").write_text("orders,0,0\n")
    result = run(*command.split(), "-g", "biling", "-o", "json")
    assert (result.code, result.raw) == (3, b"")
    assert "group biling does not exist" in result.err
    assert "--new-group" in result.err
    assert "did you mean 'billing'?" in result.err
    assert groups(billing) == {"billing"}
    if "mqadmin" not in command:
        done = run(*command.split(), "-g", "biling", "--new-group", "-o", "json")
        assert done.code == 0, done.err
        assert groups(billing) == (
            {"billing"} if "-n" in command.split() else {"billing", "biling"}
        )


@pytest.mark.slow
def test_a_group_with_settings_alone_is_known(billing):
    run("group", "create", "biling")
    given = ("offset", "reset", "-g", "biling", "-t", "orders", "--to-earliest", "-y")
    assert run(*given).code == 0


@pytest.mark.parametrize("command", ["retry browse", "dlq browse", "dlq redrive", "retry now"])
def test_retries_and_dead_letters_name_the_near_group(billing, command):
    result = run(
        *command.split(), "biling", *(["--all"] if command in ("dlq redrive", "retry now") else [])
    )
    assert result.code == 3
    assert "did you mean 'billing'?" in result.err


@pytest.mark.slow
def test_consume_starts_a_new_group_unless_it_seems_to_be_mistyped(billing):
    result = run("consume", "orders", "-g", "biling", "-e")
    assert (result.code, result.raw) == (7, b"")
    assert "topic orders has no group biling, but a group billing" in result.err
    assert "add --new-group to start biling" in result.err
    assert groups(billing) == {"billing"}
    assert run("consume", "orders", "-g", "audit", "-e").code == 0
    started = run("consume", "orders", "-g", "biling", "-e", "--new-group")
    assert (started.code, sorted(started.lines)) == (0, ["a", "b"])
    assert run("consume", "orders", "-g", "biling", "-e").code == 0, "it is known now"


def test_the_option_needs_a_group(store):
    result = run("consume", "orders", "-e", "--new-group")
    assert (result.code, json.dumps(result.err).count("--group")) == (2, 1)
