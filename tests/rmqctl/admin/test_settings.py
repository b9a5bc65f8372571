"""Topics and groups through the library: created, altered, deleted; no command line."""

from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.errors import InvalidNameError, NoPermissionError
from rmqctl.admin import groups, topics
from rmqctl.admin.changes import Change, journal_note
from rmqctl.errors import NotFound, Refused
from storage.configs.journal import Journal
from storage.configs.subscription_groups import SubscriptionGroupConfig, subscription_groups_file
from storage.configs.topics import TopicConfig
from storage.errors import StoreInUseError
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.java_lock import java_lock

NOTE = journal_note("test", reason="to see")
GROUP = SubscriptionGroupConfig("g")


def topics_of(root):
    with StoreView.open(root) as view:
        return view.topics()


def groups_of(root):
    return subscription_groups_file(root).read(0).items


CASES: dict[str, Any] = {
    "topic": (topics, TopicConfig("new", 2, 2), {"perm": 4}, topics_of),
    "group": (groups, SubscriptionGroupConfig("new"), {"retry_max_times": 3}, groups_of),
}


@pytest.mark.parametrize("noun", CASES)
def test_a_creation_is_a_plan_then_rows_and_journal_entries(asked, orders, noun):
    admin, config, values, read = CASES[noun]
    change = admin.create(asked.view, [config])
    assert isinstance(change, Change)
    assert [(row[0], row.created) for row in change.plan] == [("new", None)]
    assert "new" not in read(orders)
    assert [row.created for row in change.apply(NOTE).rows] == [True]
    assert read(orders)["new"] == config
    files = {path: path.read_bytes() for path in (orders / "config").iterdir()}
    assert [row.created for row in admin.create(asked.view, [config]).apply(NOTE).rows] == [False]
    assert {path: path.read_bytes() for path in (orders / "config").iterdir()} == files
    again = admin.create(asked.view, [config, config._replace(**{config._fields[0]: "more"})])
    assert [row.created for row in again.plan] == [False, None]
    with pytest.raises(Refused, match="exists already with"):
        admin.create(asked.view, [config._replace(**values)])
    *_, entry = Journal(orders).entries()
    assert (entry["command"], entry["reason"], entry[noun]) == ("test", "to see", "new")
    assert (entry["old"], next(iter(values)) in entry["new"]) == (None, True)


@pytest.mark.parametrize("noun", CASES)
def test_a_creation_does_not_replace_what_another_process_created(asked, orders, noun):
    admin, config, values, read = CASES[noun]
    change = admin.create(asked.view, [config])
    admin.create(asked.view, [config._replace(**values)]).apply(NOTE)
    with pytest.raises(Refused, match="exists already with"):
        change.apply(NOTE)
    assert read(orders)["new"] == config._replace(**values)


@pytest.mark.parametrize("noun", CASES)
def test_an_alteration_is_a_plan_then_written_and_read_back(asked, orders, noun):
    admin, config, values, read = CASES[noun]
    admin.create(asked.view, [config]).apply(NOTE)
    change = admin.alter(asked.view, ["new"], values)
    [(setting, value)] = values.items()
    assert [(row[0], row.setting, row.new, row.applied) for row in change.plan] == [
        ("new", setting, str(value), None)
    ]
    assert (change.question, change.confirm_name, change.has_effect) == ("Change new?", None, True)
    with java_lock(orders), pytest.raises(StoreInUseError):
        change.apply(NOTE)
    assert read(orders)["new"] == config
    assert [row.applied for row in change.apply(NOTE).rows] == [True]
    assert read(orders)["new"] == config._replace(**values)
    assert not admin.alter(asked.view, ["new"], values).has_effect


@pytest.mark.parametrize(
    ("name", "error"),
    [("nope", NotFound), ("TBW102", NoPermissionError), ("a b", InvalidNameError)],
)
def test_what_cannot_be_changed_is_an_error(asked, name, error):
    group = "TOOLS_CONSUMER" if name == "TBW102" else name
    for plan in (
        lambda: topics.alter(asked.view, [name], {"perm": 4}),
        lambda: topics.delete(asked.view, name),
        lambda: groups.alter(asked.view, [group], {"retry_max_times": 4}),
        lambda: groups.delete(asked.view, asked.broker, group),
    ):
        with pytest.raises(error):
            plan()


def test_a_topic_is_deleted_with_the_offsets_in_it(asked, orders, offsets_of):
    change = topics.delete(asked.view, "orders", remove_offsets=True)
    assert (change.confirm_name, change.entry) == ("orders", {"topic": "orders"})
    assert [(row.part, row.amount, row.fate) for row in change.plan] == [
        ("settings", 1, "removed"),
        ("queues", 2, "removed"),
        ("messages", 15, "kept"),
        ("offsets", 1, "removed"),
    ]
    assert all(row.applied for row in change.apply(NOTE).rows)
    assert ("orders" in topics_of(orders), offsets_of()) == (False, {0: None})


def test_progress_that_went_meanwhile_does_not_stop_the_deletion_of_a_topic(
    asked, orders, offsets_of
):
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("h", [OffsetCommit("orders", 1, 2)])
    change = topics.delete(asked.view, "orders", remove_offsets=True)
    assert run("offset", "delete", "g", "-t", "orders", "-S", orders, "-y").code == 0
    assert all(row.applied for row in change.apply(NOTE).rows)
    assert ("orders" in topics_of(orders), offsets_of("h")) == (False, {1: None})


def test_a_group_is_deleted_and_its_offsets_stay_or_go(asked, orders, offsets_of):
    groups.create(asked.view, [GROUP]).apply(NOTE)
    groups.delete(asked.view, asked.broker, "g").apply(NOTE)
    assert ("g" in groups_of(orders), offsets_of()) == (False, {0: 5})
    change = groups.delete(asked.view, asked.broker, "g", remove_offsets=True)
    assert [(row.part, row.topic, row.fate) for row in change.plan] == [
        ("offsets", "orders", "removed")
    ]
    change.apply(NOTE)
    assert offsets_of() == {0: None}
