"""offset orphans: progress of deleted topics and groups is found, and corrected on request."""

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.configs.topics import TopicConfig
from tests.support import golden
from tests.support.cli import run


@pytest.fixture
def orphaned(orders):
    commits = [
        OffsetCommit("gone", 0, 7),
        OffsetCommit("orders", 5, 3),
        OffsetCommit("orders", 1, 9),
        OffsetCommit("orders", 0, 5),
    ]
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("g", commits)
        broker.update_topic(TopicConfig("%RETRY%nobody", 1, 1))
    return orders


def rows(*options):
    result = run("offset", "orphans", *options, "-o", "json")
    assert result.code == 0, result.err
    return result.json()


@pytest.mark.feature(57, 82)
def test_what_was_left_behind_is_listed(orphaned):
    assert [(r["topic"], r["queue_id"], r["problem"], r["fix"]) for r in rows()] == [
        ("gone", 0, "TOPIC_GONE", "delete the progress"),
        ("orders", 1, "AHEAD", "move to 5"),
        ("orders", 5, "QUEUE_GONE", "delete the progress"),
        ("%RETRY%nobody", None, "NO_GROUP", "rmqctl topic delete %RETRY%nobody"),
    ]


@pytest.mark.slow
@pytest.mark.feature(82)
def test_fix_puts_the_progress_right_and_leaves_the_rest(orphaned, offsets):
    assert run("offset", "orphans", "--fix").code == 7, "it asks"
    assert len(rows("--fix", "--dry-run")) == 3
    result = run("offset", "orphans", "--fix", "--yes", "-o", "json")
    assert result.code == 0, result.err
    assert [(r["committed_offset"], r["new_offset"], r["applied"]) for r in result.json()] == [
        (7, None, True),
        (9, 5, True),
        (3, None, True),
    ]
    assert "1 of 4 are no progress" in result.err
    assert offsets() == {0: 5, 1: 5}
    assert [row["problem"] for row in rows()] == ["NO_GROUP"]
    assert run("offset", "undo", "--last", "--execute", "--yes").code == 0
    assert len(rows()) == 4


def test_progress_before_the_first_message_is_listed(tmp_path, monkeypatch):
    root = golden.extract("retention-4.9", tmp_path)
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    lost = [row for row in rows() if row["problem"] == "LOST"]
    states = run("offset", "list", "-o", "json", "--where", "state = LOST").json()
    assert [(r["group"], r["topic"], r["queue_id"], r["new_offset"]) for r in lost] == [
        (r["group"], r["topic"], r["queue_id"], r["min_offset"]) for r in states
    ]


def test_a_store_in_order_has_none(orders):
    assert rows() == []
    for option in ("--yes", "--dry-run"):
        assert run("offset", "orphans", "--fix", option).err == "there is nothing to change\n"
