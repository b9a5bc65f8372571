"""Settings of topics, groups and brokers beside a Java broker, and beside another operator."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.broker.settings import BrokerSettings
from rmqctl.cli.context import Cli
from rmqctl.cli.opening import tables_for_change
from rmqctl.errors import CliError
from rmqctl.group.deletion import GroupDeletion
from rmqctl.group.plans import change_groups, group_changes
from rmqctl.topic.deletion import TopicDeletion
from rmqctl.topic.plans import change_topics, topic_changes
from storage.configs.store_settings import read_store_settings
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from tests.support.cli import run
from tests.support.java_lock import java_lock

CHANGES = {
    "topic create": ("new",),
    "topic alter": ("t", "--perm", 4),
    "topic delete": ("t", "--confirm", "t"),
    "group create": ("new",),
    "group alter": ("g", "--no-broadcast"),
    "group delete": ("g", "--confirm", "g", "--remove-offsets"),
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


@pytest.mark.parametrize("command", CHANGES)
def test_a_java_broker_keeps_every_change_away(made, command):
    before = content(made)
    with java_lock(made):
        result = run(*command.split(), *CHANGES[command], "--yes")
    assert result.code == 5, result
    assert "is in use by a Java broker" in result.err
    assert content(made) == before


@pytest.mark.parametrize("command", [name for name in CHANGES if not name.endswith("create")])
def test_a_plan_can_be_looked_at_beside_it(made, command):
    with java_lock(made):
        assert run(*command.split(), *CHANGES[command], "-n").code == 0


def faster(store):
    """What another operator does between the plan and the write."""
    run("topic", "alter", "t", "--order", "--yes", "-S", store)
    run("group", "alter", "g", "--retry-max-times", 2, "--yes", "-S", store)


def note(_name: str) -> dict[str, str]:
    return {"command": "test"}


@pytest.fixture
def tables(made):
    with tables_for_change(Cli()) as opened:
        yield opened


def refused(change):
    with pytest.raises(CliError, match="changed since the plan was made; nothing was") as caught:
        list(change())
    assert caught.value.exit_code == 6


def test_a_topic_that_was_changed_meanwhile_is_not_changed(made, tables):
    changes = topic_changes(tables, ["t"], {"perm": 4})
    faster(made)
    refused(lambda: change_topics(tables, changes, note))
    assert tables.topics.get("t") == TopicConfig("t", 8, 8, 6, order=True)


def test_a_topic_that_was_changed_meanwhile_is_not_deleted(made, tables):
    deletion = TopicDeletion(tables, "t", remove_offsets=True)
    faster(made)
    refused(lambda: deletion.carry_out(note("t")))
    assert run("consume", "t", "-e").out == "x\n"
    assert run("offset", "list", "-o", "json", "--where", "topic = t").json()


def test_a_group_that_was_changed_meanwhile_is_neither_changed_nor_deleted(made, tables):
    changes = group_changes(tables, ["g"], {"consume_enable": False})
    with EmbeddedBroker.open(made, read_only=True) as broker:
        deletion = GroupDeletion(tables, broker, "g", remove_offsets=True, remove_topics=False)
        faster(made)
        refused(lambda: change_groups(tables, changes, note))
        refused(lambda: deletion.carry_out(note("g")))
    assert tables.groups.get("g") == SubscriptionGroupConfig("g", retry_max_times=2)
    assert run("offset", "list", "-o", "json", "--where", "topic = t").json()


def test_settings_that_were_changed_meanwhile_are_not_changed(made, tables):
    settings = BrokerSettings(made, tables.view.config)
    run("broker", "config", "set", "deleteWhen", "05", "--yes")
    refused(lambda: settings.change("file_reserved_time_hours", "24", note(""), 0))
    assert read_store_settings(made).store == {"delete_when": "05"}
