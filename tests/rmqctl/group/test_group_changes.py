"""``group create``, ``alter`` and ``delete``, beside real members."""

import json
from contextlib import contextmanager
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import groups as admin_groups
from storage.configs.pending_commits import PendingCommits
from storage.configs.progress_table import QueueProgress
from storage.configs.subscription_groups import SubscriptionGroupConfig, subscription_groups_file
from storage.configs.topics import topics_file
from storage.errors import StoreInUseError
from tests.support import golden
from tests.support.cli import run, start
from tests.support.consumers import eventually
from tests.support.java_lock import java_lock

SETTINGS: dict[str, tuple[str, Any]] = {
    "--retry-max-times": ("retry_max_times", 3),
    "--retry-queue-nums": ("retry_queue_nums", 2),
    "--broker-id": ("broker_id", 1),
    "--which-broker-when-consume-slowly": ("which_broker_when_consume_slowly", 2),
    "--no-consume-enable": ("consume_enable", False),
    "--no-consume-from-min": ("consume_from_min_enable", False),
    "--no-broadcast": ("consume_broadcast_enable", False),
    "--no-notify-consumer-ids-changed": ("notify_consumer_ids_changed_enable", False),
}
EVERY_OPTION = [
    part
    for option, (_, value) in SETTINGS.items()
    for part in ([option] if value is False else [option, value])
]

DEAD_AT_ONCE = "a message that fails once becomes a dead letter"


def settings(store, group):
    return subscription_groups_file(store).read(0).get(group)


def version(store):
    return subscription_groups_file(store).read(0).data_version.counter


def journal(store):
    lines = b"".join(path.read_bytes() for path in sorted((store / "rmqctl/journal").iterdir()))
    return [json.loads(line)["entry"] for line in lines.splitlines()]


def test_every_setting_of_rocketmq_has_its_option(store):
    result = run("group", "create", "g", *EVERY_OPTION, "-o", "json")
    assert result.code == 0, result.err
    assert settings(store, "g") == SubscriptionGroupConfig("g", **dict(SETTINGS.values()))
    assert result.json()[0]["created"] is True
    assert version(store) == 1


def test_what_is_not_named_is_as_for_a_group_that_use_creates(store):
    run("group", "create", "a", "-g", "b")
    run("produce", "t", "-q", stdin=b"x\n")
    run("consume", "t", "-g", "used", "-e")
    used = settings(store, "used")
    assert settings(store, "a") == used._replace(group_name="a")
    assert settings(store, "b") == used._replace(group_name="b")


def test_the_file_has_the_bytes_that_a_broker_writes(store):
    run("group", "create", "g", *EVERY_OPTION)
    text = (store / "config/subscriptionGroup.json").read_text()
    assert text.endswith(
        '\t\t"g":{\n\t\t\t"brokerId":1,\n\t\t\t"consumeBroadcastEnable":false,\n'
        '\t\t\t"consumeEnable":false,\n\t\t\t"consumeFromMinEnable":false,\n'
        '\t\t\t"groupName":"g",\n\t\t\t"notifyConsumerIdsChangedEnable":false,\n'
        '\t\t\t"retryMaxTimes":3,\n\t\t\t"retryQueueNums":2,\n'
        '\t\t\t"whichBrokerWhenConsumeSlowly":2\n\t\t}\n\t}\n}'
    )


@pytest.mark.slow
def test_groups_that_are_named_together_are_one_change_of_the_table(store):
    run("group", "create", "before")
    table = store / "config/subscriptionGroup.json"
    as_it_was = table.read_bytes()
    result = run("group", "create", "a", "before", "b", "-o", "json")
    assert [row["created"] for row in result.json()] == [True, False, True]
    assert table.with_name("subscriptionGroup.json.bak").read_bytes() == as_it_was
    as_it_was = table.read_bytes()
    result = run("group", "alter", "a", "b", "--no-consume-enable", "-y", "-o", "json")
    assert [row["applied"] for row in result.json()] == [True] * 2
    assert table.with_name("subscriptionGroup.json.bak").read_bytes() == as_it_was


def test_a_dry_run_does_not_say_that_a_group_was_created(store):
    run("group", "create", "there")
    result = run("group", "create", "g", "there", "-n", "-o", "json")
    assert [row["created"] for row in result.json()] == [None, False]
    said = f"store {store} (variable RMQCTL_STORE)\ndry run: nothing was created\n"
    assert result.err == said
    assert settings(store, "g") is None


def test_groups_that_are_made_and_not_shown_are_spoken_of(store):
    result = run("group", "create", "a", "b", "-o", "json", "--where", "group = b")
    assert [row["group"] for row in result.json()] == ["b"]
    assert "1 of 2 rows of the result are not shown" in result.err
    assert settings(store, "a") is not None


@pytest.mark.slow
@pytest.mark.feature(101)
def test_what_is_named_changes_and_the_rest_stays(store):
    run("group", "create", "g", "--no-broadcast")
    args = ("group", "alter", "g", "--retry-max-times", 0, "--no-consume-enable")
    plan = run(*args, "-n", "-o", "json")
    assert [list(row.values()) for row in plan.json()] == [
        ["g", "consume_enable", "true", "false", "its members get no messages", None],
        ["g", "retry_max_times", "16", "0", DEAD_AT_ONCE, None],
    ]
    assert version(store) == 1
    result = run(*args, "-y", "-o", "json", "--reason", "why")
    assert [row["applied"] for row in result.json()] == [True, True]
    now = settings(store, "g")
    assert (now.consume_enable, now.retry_max_times) == (False, 0)
    assert now.consume_broadcast_enable is False
    assert version(store) == 2
    entry = journal(store)[-1]
    assert (entry["command"], entry["group"], entry["reason"]) == ("group alter", "g", "why")
    assert (entry["old"]["retry_max_times"], entry["new"]["retry_max_times"]) == (16, 0)


def test_more_retry_queues_come_with_a_retry_topic_that_has_as_many(store):
    run("produce", "t", "-q", stdin=b"x\n")
    run("group", "create", "g", "--retry-queue-nums", 0)
    run("consume", "t", "-g", "g", "-e", "-q")
    args = ("group", "alter", "g", "--retry-queue-nums", 2, "-o", "json")
    (row,) = run(*args, "-n").json()
    assert row["note"] == "topic %RETRY%g gets 2 queues, too"
    assert topics_file(store).read(0).items["%RETRY%g"].read_queue_nums == 0
    result = run(*args, "-y", "--reason", "why")
    assert result.code == 0, result.err
    topic = topics_file(store).read(0).items["%RETRY%g"]
    assert (topic.read_queue_nums, topic.write_queue_nums) == (2, 2)
    entry = journal(store)[-2]
    assert (entry["command"], entry["topic"], entry["reason"]) == ("group alter", "%RETRY%g", "why")
    (row,) = run("group", "alter", "g", "--retry-queue-nums", 1, "-n", "-o", "json").json()
    assert row["note"] is None


def test_a_plan_names_the_retry_topic_that_gets_more_queues_with_a_new_group(store):
    run("topic", "create", "%RETRY%g", "--queues", 1)
    args = ("group", "create", "g", "h", "--retry-queue-nums", 4)
    result = run(*args, "-n")
    assert result.err.count("topic %RETRY%g gets 4 queues, too") == 1
    assert "%RETRY%h" not in result.err
    assert run(*args).code == 0
    assert topics_file(store).read(0).items["%RETRY%g"].read_queue_nums == 4


def test_a_group_that_may_not_consume_does_not(store):
    run("produce", "t", "-q", stdin=b"x\n")
    run("group", "create", "g", "--no-consume-enable")
    assert run("consume", "t", "-g", "g", "-e").code == 7


@pytest.mark.slow
def test_the_number_of_attempts_decides_when_a_message_is_dead(store):
    run("produce", "t", "-q", stdin=b"x\n")
    run("group", "create", "g", "--retry-max-times", 0)
    run("group", "create", "patient", "--retry-max-times", 1)
    for group in ("g", "patient"):
        run("consume", "t", "-g", group, "-c", 1, "--exec", "false")
    dead = {row["group"]: row["dlq"] for row in run("group", "list", "-o", "json").json()}
    assert (dead["g"], dead["patient"]) == (1, 0)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["create"], 2, "missing argument 'GROUP...'"),
        (["create", "a b"], 2, "has characters other than"),
        (["create", "x" * 256], 2, "allowed are 255"),
        (["create", "x", "--retry-max-times", "-1"], 2, "--retry-max-times: -1 is not a number"),
        (["create", "TOOLS_CONSUMER"], 7, "belongs to the system"),
        (["alter", "g"], 2, "no setting to change"),
        (["alter", "nope", "--broadcast"], 3, "group nope has no settings"),
        (["delete", "nope"], 3, "group nope does not exist"),
        (["delete", "CID_ONSAPI_PULL"], 7, "belongs to the system"),
        (["delete", "g", "--confirm", "h", "-y"], 7, "'h' is not 'g'; nothing was changed"),
    ],
)
def test_what_can_not_be_is_one_sentence(store, args, code, sentence):
    run("group", "create", "g")
    result = run("group", *args, "-o", "json")
    assert (result.code, result.raw) == (code, b"")
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert version(store) == 1


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--yes"], ["--confirm", "g"]])
def test_without_consent_the_plan_of_a_deletion_is_all(store, options):
    run("group", "create", "g")
    result = run("group", "delete", "g", *options, "-o", "json")
    assert (result.code, [row["applied"] for row in result.json()]) == (7, [None])
    missing = "--yes" if "--confirm" in options else "--confirm g --yes"
    assert f"nothing was changed: no terminal to ask on; add {missing} to proceed" in result.err
    assert run("group", "describe", "g").code == 0


# -- deleting ---------------------------------------------------------------------------------


@pytest.fixture
def used(store):
    """A group that has read a topic and has a dead letter."""
    run("produce", "t", "--queue", 0, "-q", stdin=b"x\ny\n")
    run("consume", "t", "-g", "g", "-c", 1, "--delay-level", -1, "--exec", "false")
    return store


def groups():
    return {row["group"] for row in run("group", "list", "-o", "json").json()}


def parts(result):
    return [(row["part"], row["topic"], row["amount"], row["fate"]) for row in result.json()]


@pytest.mark.slow
def test_settings_go_and_progress_stays(used):
    before = version(used)
    progress = run("offset", "list", "-o", "json").json()
    result = run("group", "delete", "g", "--confirm", "g", "-y", "-o", "json")
    assert result.code == 0, result.err
    assert ("settings", None, 1, "removed") in parts(result)
    assert ("dead letters", "%DLQ%g", 1, "kept") in parts(result)
    assert {fate for part, _, _, fate in parts(result) if part == "offsets"} == {"kept"}
    assert settings(used, "g") is None
    assert version(used) == before + 1
    assert run("offset", "list", "-o", "json").json() == progress


@pytest.mark.slow
def test_a_group_of_which_everything_stays_needs_no_name_and_is_left_alone(used):
    run("group", "delete", "g", "--confirm", "g", "-y")
    entries = journal(used)
    done = run("group", "delete", "g", "-y", "-o", "json")
    assert (done.code, "there is nothing to change" in done.err) == (0, True)
    assert {(row["fate"], row["applied"]) for row in done.json()} == {("kept", None)}
    assert journal(used) == entries
    with EmbeddedBroker.open(used, read_only=True) as broker:
        deletion = admin_groups.delete(broker.view, broker, "g")
        assert not deletion.has_effect
        rows = deletion.apply({"command": "group delete"}).rows
    assert {row.applied for row in rows} == {None}
    assert run("group", "delete", "g", "--remove-offsets", "-y").code == 7


@pytest.mark.slow
def test_everything_goes_if_that_is_wanted(used):
    result = run(
        *("group", "delete", "g", "--remove-offsets", "--remove-topics", "--confirm", "g", "-y"),
        *("-o", "json"),
    )
    assert result.code == 0, result.err
    assert {row["fate"] for row in result.json()} == {"removed"}
    assert all(row["applied"] for row in result.json())
    assert "g" not in groups()
    topics = run("topic", "list", "-o", "json").json()
    assert not any(row["topic"].endswith("%g") for row in topics)
    assert "@g" not in (used / "config/consumerOffset.json").read_text()


@pytest.mark.slow
def test_a_group_that_comes_back_begins_anew(used):
    run("group", "delete", "g", "--remove-offsets", "--confirm", "g", "-y")
    assert run("consume", "t", "-g", "g", "-e").lines == ["x", "y"]


@pytest.mark.slow
def test_offsets_that_a_killed_process_had_in_memory_can_be_brought_back(used):
    before = run("offset", "list", "-o", "json", "--where", "topic = t").json()
    (used / "rmqctl/members").mkdir(exist_ok=True)
    notes = PendingCommits(used / "rmqctl/members/dead.notes")
    notes.write(("t@g", 0), QueueProgress(0, 2))
    notes.close()
    assert [row["committed_offset"] for row in before if row["queue_id"] == 0] == [1]
    assert run("group", "delete", "g", "--remove-offsets", "--confirm", "g", "-y").code == 0
    old = {(move["topic"], move["queue_id"]): move["old"] for move in journal(used)[-1]["moves"]}
    assert old["t", 0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["t", "u"])
def test_offsets_that_only_a_killed_process_had_in_memory_are_forgotten_too(used, topic):
    run("produce", "u", "-q", stdin=b"x\n")
    (used / "rmqctl/members").mkdir(exist_ok=True)
    notes = PendingCommits(used / "rmqctl/members/dead.notes")
    for queue_id in range(7):
        notes.write((f"{topic}@g", queue_id), QueueProgress(0, 0))
    notes.close()
    words = ("group", "delete", "g", "--remove-offsets", "--confirm", "g", "-o", "json")
    planned = ("offsets", topic, 7, "removed")
    assert planned in parts(run(*words, "-n"))
    done = run(*words, "-y")
    assert (done.code, planned in parts(done)) == (0, True)
    assert all(row["applied"] for row in done.json())
    assert not run("offset", "list", "-o", "json", "--where", "group = g").json()


@pytest.mark.slow
def test_offsets_that_were_committed_since_the_plan_are_forgotten_too(used):
    with EmbeddedBroker.open(used, read_only=True) as broker:
        deletion = admin_groups.delete(broker.view, broker, "g", remove_offsets=True)
        (used / "rmqctl/members").mkdir(exist_ok=True)
        notes = PendingCommits(used / "rmqctl/members/dead.notes")
        notes.write(("u@g", 0), QueueProgress(0, 1))
        notes.close()
        deletion.apply({"command": "group delete"})
    assert not run("offset", "list", "-o", "json", "--where", "group = g").json()


@pytest.mark.slow
def test_offsets_are_not_forgotten_beside_a_java_broker_that_starts_meanwhile(used):
    before = (used / "config/consumerOffset.json").read_bytes()
    run("group", "delete", "g", "--confirm", "g", "-y")
    with EmbeddedBroker.open(used, read_only=True) as broker:
        deletion = admin_groups.delete(broker.view, broker, "g", remove_offsets=True)
        deletion.check()
        with java_lock(used), pytest.raises(StoreInUseError):
            deletion.apply({"command": "group delete"})
    assert (used / "config/consumerOffset.json").read_bytes() == before


@pytest.mark.slow
def test_a_dry_run_deletes_nothing(used):
    before = (used / "config/subscriptionGroup.json").read_bytes()
    result = run("group", "delete", "g", "--remove-offsets", "-n", "-o", "json")
    assert (result.code, result.json()[0]["applied"]) == (0, None)
    assert (used / "config/subscriptionGroup.json").read_bytes() == before
    assert len(run("offset", "list", "--no-headers", "--where", "topic = t").lines) == 4


@contextmanager
def member(group):
    with start("consume", "t", "-g", group) as process:
        try:
            assert process.stdout.readline() == b"x\n"
            yield process
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.slow
def test_a_group_that_lives_is_not_deleted(used):
    with member("live") as process:
        result = run("group", "delete", "live", "--confirm", "live", "-y", "-o", "json")
        assert (result.code, result.raw) == (7, b"")
        assert f"@{process.pid}#" in result.err
        assert settings(used, "live") is not None
        assert run("group", "delete", "g", "--confirm", "g", "-y").code == 0


@pytest.mark.slow
def test_only_members_that_read_its_topics_hold_them_back(used):
    remove = ["group", "delete", "g", "--remove-topics", "--confirm", "g", "-y"]
    with start("consume", "%RETRY%g", "-g", "reader") as process:
        try:
            rows = ["group", "clients", "reader", "-o", "json"]
            eventually(lambda: run(*rows).code == 0 and run(*rows).json())
            refused = run(*remove)
            assert refused.code == 7
            assert f"process {process.pid} has a consumer of group reader" in refused.err
            assert "reads topic %RETRY%g" in refused.err
            assert settings(used, "g") is not None
        finally:
            process.terminate()
            process.wait(30)
    with member("live"):
        assert run(*remove).code == 0
        assert run("topic", "describe", "%RETRY%g").code == 3


def test_a_foreign_store_loses_the_one_group_and_nothing_else(tmp_path):
    root = golden.extract("basic-4.9", tmp_path)
    before = json.loads((root / "config/subscriptionGroup.json").read_text())
    known = before["subscriptionGroupTable"]
    own = {
        row["group"]
        for row in run("group", "list", "-o", "json", "-S", root).json()
        if row["kind"] == "normal"
    } & set(known)
    name = sorted(own)[0]
    assert run("group", "delete", name, "--confirm", name, "-y", "-S", root).code == 0
    after = json.loads((root / "config/subscriptionGroup.json").read_text())
    assert set(known) - set(after["subscriptionGroupTable"]) == {name}
    assert after["dataVersion"]["counter"] == before["dataVersion"]["counter"] + 1
