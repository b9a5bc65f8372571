"""What plans of deletions say of groups of which it is unknown what they have read."""

import os

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import store as admin
from rmqctl.admin.unreachable_messages import retention_sentence, unread_of, unread_of_group
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.looks.store import DISK
from storage.configs.consumer_offsets import consumer_offset_file
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.recording_client import RecordingClient, consumer, heartbeat
from tests.support.samples import TINY

HOUR_MS = 3_600_000
NOW = 1_767_225_600_000
REASON = "without progress in some queue or beyond its end"


@pytest.fixture
def log(tmp_path):
    """Two queues of 60 messages; all log files but the last three are 30 hours old."""
    root = tmp_path / "s"
    MessageStore.create(root, TINY)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 2, 2))
        for n in range(120):
            broker.send(Message("t", bytes(300)), n % 2)
    logs = sorted((root / "commitlog").iterdir())
    for path in logs:
        os.utime(path, (0, (NOW - 30 * HOUR_MS) / 1000))
    for path in logs[-3:]:
        os.utime(path, (0, NOW / 1000))
    return root


def commit(root, group, *offsets, topic="t"):
    with EmbeddedBroker.open(root) as broker:
        commits = [OffsetCommit(topic, queue, offset) for queue, offset in offsets]
        broker.update_consumer_offsets(group, commits)


def plan_of(view, broker):
    """The groups of a plan to delete the old files, and its first sentence."""
    change = admin.clean(view, broker, older_than_ms=24 * HOUR_MS, now_ms=NOW)
    assert change.plan
    names = [{name for row in change.plan for name in of(row)} for of in (_unread, _unknown)]
    return *names, change.summary[0]


def _unread(row):
    return row.unread_by


def _unknown(row):
    return row.unknown_for


def sentence(view):
    config = view.config.with_(file_reserved_time_hours=24)
    whole = retention_sentence(view, config, NOW)
    assert whole is not None
    return whole.rpartition(" on; ")[2]


def usage(view, broker):
    row = next(admin.disk_use(view, broker, now_ms=NOW).by_topic())
    (day,) = admin.disk_use(view, broker, now_ms=NOW).by_day(None)
    assert (day.unread_by, day.unknown_for) == (row.unread_by, row.unknown_for)
    return row.unread_by, row.unknown_for


def test_no_progress_in_a_queue_and_progress_beyond_its_end_are_unknown(log, ask):
    commit(log, "half", (0, 60))
    commit(log, "ahead", (0, 60), (1, 1000))
    commit(log, "done", (0, 60), (1, 60))
    view, broker = ask(log)
    said = f"unknown for ahead, half, {REASON}"
    told = f"whether all of it was read is {said}"
    assert plan_of(view, broker) == (set(), {"ahead", "half"}, told)
    assert sentence(view) == said
    assert usage(view, broker) == ([], ["ahead", "half"])


def test_a_group_may_have_unread_messages_in_one_queue_and_be_unknown_in_another(log, ask):
    commit(log, "half", (0, 3))
    view, broker = ask(log)
    unread, unknown, told = plan_of(view, broker)
    assert unread == unknown == {"half"}
    assert told == "not read by half, which will lose messages"
    assert sentence(view) == (
        f"not read to the end by half, which would lose messages; unknown for half, {REASON}"
    )
    assert usage(view, broker) == (["half"], ["half"])


def test_all_is_read_only_if_nothing_is_unknown(log, ask):
    commit(log, "done", (0, 60), (1, 60))
    view, broker = ask(log)
    unread, unknown, told = plan_of(view, broker)
    assert not unread
    assert not unknown
    assert "read" not in told
    assert sentence(view) == "every group with progress has read them"
    assert usage(view, broker) == ([], [])


def test_a_member_without_progress_is_unknown(log, ask):
    with EmbeddedBroker.open(log) as running:
        running.connect("c", RecordingClient())
        running.heartbeat(heartbeat("c", consumer("new", "t", "other")))
        view, broker = ask(log)
        assert plan_of(view, broker)[:2] == (set(), {"new"})
        assert sentence(view) == f"unknown for new, {REASON}"
        assert usage(view, broker) == ([], ["new"])
        assert unread_of(view, "t").unknown == ["new"]
        assert unread_of_group(view, "new") == "; what is unread in t is unknown"


def test_progress_from_a_bak_is_in_doubt(log, ask):
    commit(log, "done", (0, 60), (1, 60))
    commit(log, "late", (0, 1), (1, 60))
    file = consumer_offset_file(log).path
    for path in (log / "rmqctl").glob("offsets.*"):
        path.unlink()
    file.rename(file.with_name("consumerOffset.json.bak"))
    view, broker = ask(log)
    doubt = f"{file} is missing; these offsets are from its .bak"
    assert plan_of(view, broker)[:2] == ({"late"}, {"done"})
    assert sentence(view).endswith(f"; unknown for done: {doubt}")
    assert usage(view, broker) == (["late"], ["done"])
    assert unread_of(view, "t").unknown == ["done"]


def test_no_group_has_read_all_where_progress_is_lost(log, ask):
    commit(log, "done", (0, 60), (1, 60))
    for path in (log / "rmqctl").glob("offsets.*"):
        path.unlink()
    file = consumer_offset_file(log)
    file.bak_path.unlink(missing_ok=True)
    file.path.write_bytes(b"")
    view, broker = ask(log)
    said = f"unknown for all groups: {view.progress_doubt()}"
    assert "is empty and has no .bak" in said
    assert plan_of(view, broker)[2] == f"whether all of it was read is {said}"
    assert sentence(view) == said


def test_retries_of_a_group_without_progress_are_unread(tmp_path, ask):
    root = tmp_path / "s"
    MessageStore.create(root, TINY)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("%RETRY%g", 1, 1))
        broker.send(Message("%RETRY%g", b"x"), 0)
    view, broker = ask(root)
    assert usage(view, broker) == (["g"], [])
    assert unread_of(view, "%RETRY%g").groups == {"g": 1}


def test_what_is_unknown_of_a_group_is_told_beside_its_unread_messages(log, ask):
    commit(log, "half", (0, 58))
    view, _ = ask(log)
    assert unread_of_group(view, "half") == (
        "; 2 messages unread in t (2); what else is unread in t is unknown"
    )


def test_the_console_has_the_same_rows(log):
    commit(log, "half", (0, 60))
    with EmbeddedBroker.open(log, read_only=True) as broker:
        source = Source(broker, NOW, lambda sentence: None, {})
        row = next(iter(DISK.read(source, Place("overview"))))
        assert row == next(admin.disk_use(broker.view, broker, now_ms=NOW).by_topic())
    assert row.unknown_for == ["half"]
