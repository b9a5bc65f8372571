"""Settings of topics, groups and brokers beside a Java broker, and beside another operator."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import groups, topics
from rmqctl.errors import CliError
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from tests.support.cli import run
from tests.support.java_lock import java_lock

CHANGES = {
    "topic create": ("new",),
    "topic alter": ("t", "--perm", 4),
    "topic delete": ("t", "--confirm", "t", "-y"),
    "group create": ("new",),
    "group alter": ("g", "--no-broadcast"),
    "group delete": ("g", "--confirm", "g", "-y", "--remove-offsets"),
    "broker config": ("set", "fileReservedTime", 24),
}


@pytest.fixture
def made(store):
    """A store with a topic and a group that has read it."""
    run("topic", "create", "t")
    run("produce", "t", "-q", stdin=b"x\n")
    run("consume", "t", "-g", "g", "-e")
    return store


def content(store):
    """What a change could change."""
    files = [path for path in (store / "config").iterdir() if path.suffix == ".json"]
    files += [store / "rmqctl" / name for name in ("offsets.json", "settings.json", "deleted.json")]
    return {path: path.read_bytes() for path in files if path.exists()}


@pytest.mark.slow
@pytest.mark.parametrize("command", CHANGES)
def test_a_java_broker_keeps_every_change_away(made, command):
    before = content(made)
    with java_lock(made):
        result = run(*command.split(), *CHANGES[command], "--yes")
    assert result.code == 5, result
    assert "is in use by a Java broker" in result.err
    assert content(made) == before


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in CHANGES if not name.endswith("create")])
def test_a_plan_can_be_looked_at_beside_it(made, command):
    with java_lock(made):
        assert run(*command.split(), *CHANGES[command], "-n").code == 0


def faster(store):
    """What another operator does between the plan and the write."""
    run("topic", "alter", "t", "--order", "--yes", "-S", store)
    run("group", "alter", "g", "--retry-max-times", 2, "--yes", "-S", store)


NOTE = {"command": "test"}


def refused(change):
    with pytest.raises(CliError, match="changed since the plan was made; nothing was") as caught:
        change()
    assert caught.value.exit_code == 6


@pytest.fixture
def broker(made):
    with EmbeddedBroker.open(made, read_only=True) as opened:
        yield opened


@pytest.mark.slow
def test_a_topic_that_was_changed_meanwhile_is_neither_changed_nor_deleted(made, broker):
    changes = [
        topics.alter(broker.view, ["t"], {"perm": 4}),
        topics.delete(broker.view, "t", remove_offsets=True),
    ]
    faster(made)
    for change in changes:
        refused(lambda change=change: change.apply(NOTE))
    assert broker.topic("t") == TopicConfig("t", 8, 8, 6, order=True)
    assert run("consume", "t", "-e").out == "x\n"
    assert run("offset", "list", "-o", "json", "--where", "topic = t").json()


@pytest.mark.slow
def test_a_group_that_was_changed_meanwhile_is_neither_changed_nor_deleted(made, broker):
    changes = [
        groups.alter(broker.view, ["g"], {"consume_enable": False}),
        groups.delete(broker.view, broker, "g", remove_offsets=True),
    ]
    faster(made)
    for change in changes:
        refused(lambda change=change: change.apply(NOTE))
    assert broker.groups()["g"] == SubscriptionGroupConfig("g", retry_max_times=2)
    assert run("offset", "list", "-o", "json", "--where", "topic = t").json()
