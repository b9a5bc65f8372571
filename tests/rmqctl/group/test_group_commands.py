"""``group list``, ``describe`` and ``clients``, beside real members."""

import json
from contextlib import contextmanager

import pytest

from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import call, run, start


@contextmanager
def member(*options):
    """A member of group g that has read the one message of topic t."""
    with start("consume", "t", "-g", "g", *options) as process:
        try:
            assert process.stdout.readline() == b"hello\n"
            yield process
            process.terminate()
            process.wait(30)
        finally:
            process.kill()


@pytest.fixture
def topic(store):
    run("topic", "create", "t", "--queues", 3)
    run("produce", "t", "-q", stdin=b"hello\n")
    return store


def row_of(group):
    rows = run("group", "list", "-o", "json").json()
    return next((row for row in rows if row["group"] == group), None)


def test_a_store_has_the_groups_of_rocketmq_itself(store):
    assert run("group", "list", "-o", "json").json() == []
    rows = run("group", "list", "--all", "-o", "json").json()
    assert {row["kind"] for row in rows} == {"system"}
    assert {"TOOLS_CONSUMER", "CID_ONSAPI_OWNER"} <= {row["group"] for row in rows}


@pytest.mark.feature(40)
@pytest.mark.slow
def test_what_a_list_tells_of_a_group(topic):
    assert row_of("g") is None
    with member():
        now = row_of("g")
        assert now == {
            "group": "g",
            "kind": "normal",
            "members": 1,
            "message_model": "CLUSTERING",
            "topics": now["topics"],
            "retry": 0,
            "dlq": 0,
            "consume_enable": True,
            "retry_max_times": 16,
        }
    gone = row_of("g")
    assert (gone["members"], gone["message_model"], gone["topics"]) == (0, None, 1)


@pytest.mark.slow
@pytest.mark.feature(83)
def test_retries_and_dead_letters_are_counted(topic):
    call("consume", "t", "-g", "dies", "-c", 1, "--delay-level", -1, "--exec", "false")
    assert (row_of("dies")["retry"], row_of("dies")["dlq"]) == (0, 1)
    call("consume", "t", "-g", "tries", "-c", 1, "--delay-level", 1, "--exec", "false")
    with start("broker", "start") as services:
        try:
            while row_of("tries")["retry"] == 0:
                assert services.poll() is None
        finally:
            services.kill()
    described = run("group", "describe", "tries", "-o", "json").json()
    assert (described["retry"], described["dlq"]) == (1, 0)


@pytest.mark.feature(53)
@pytest.mark.slow
def test_a_description_has_settings_subscriptions_and_members(topic):
    with member() as one:
        described = run("group", "describe", "g", "-o", "json").json()
        (client,) = described["members"]
        assert f"@{one.pid}#" in client
        assert described["settings"]["retry_max_times"] == 16
        assert (described["consume_type"], described["message_model"]) == (
            "CONSUME_PASSIVELY",
            "CLUSTERING",
        )
        said = [(item["topic"], item["expression"]) for item in described["subscriptions"]]
        assert said == [("%RETRY%g", "*"), ("t", "*")]
    described = run("group", "describe", "-g", "g", "-o", "json").json()
    assert (described["members"], described["subscriptions"]) == ([], None)
    assert described["topics"] == ["%RETRY%g", "t"]
    several = run("group", "describe", "g", "TOOLS_CONSUMER", "-o", "json").json()
    assert [row["kind"] for row in several] == ["normal", "system"]


@pytest.mark.feature(53)
@pytest.mark.conformance("B20")
@pytest.mark.slow
def test_clients_are_asked_what_they_have(topic):
    with member("--set", "instanceName=one", "--set", "pullBatchSize=7") as process:
        (row,) = run("group", "clients", "g", "-o", "json").json()
        assert (row["client_id"], row["pid"]) == ("127.0.0.1@one", process.pid)
        assert row["subscriptions"] == ["%RETRY%g:*", "t:*"]
        assert row["queues"] == ["%RETRY%g:0", "t:0", "t:1", "t:2"]
        assert row["running_info"]["properties"]["pullBatchSize"] == 7
        statistics = row["running_info"]["status"]["t"]
        assert set(statistics) >= {"pull_tps", "pull_rt", "consume_ok_tps", "consume_rt"}
        assert statistics["consume_failed_msgs"] == 0
        assert row["since_timestamp"] <= row["last_heartbeat_timestamp"]
    assert run("group", "clients", "g", "-o", "json").json() == []


def test_a_group_that_does_not_exist(store):
    for command in ("describe", "clients"):
        result = run("group", command, "nope")
        assert (result.code, result.raw) == (3, b"")
        assert "group nope does not exist" in result.err
        assert run("group", command, "a b").code == 2


@pytest.mark.slow
def test_looking_leaves_nothing_behind(topic):
    def members():
        """Whose files there are: a member replaces its own at any time."""
        found = (topic / "rmqctl" / "members").iterdir()
        return {path.name.lstrip(".").partition(".")[0] for path in found}

    with member():
        before = members()
        run("group", "clients")
        run("group", "list")
        run("broker", "status")
        assert members() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["group describe", "group why", "group clients", "dlq browse", "retry browse"]
)
def test_a_name_that_a_group_cannot_have_is_read_if_the_store_has_it(topic, command):
    run("consume", "t", "-g", "g", "-e", "-q")
    for name in ("offsets.log", "offsets.json"):
        (topic / "rmqctl" / name).unlink()
    offsets = topic / "config" / "consumerOffset.json"
    offsets.write_text(offsets.read_text().replace("@g", "@my group"))
    assert run(*command.split(), "my group").code == 0
    result = run(*command.split(), "no group")
    assert result.code == 2
    assert "has characters other than" in result.err


@pytest.fixture
def restored(tmp_path, monkeypatch):
    """A group whose progress in its retry topic, which ends at 1, is 1,000."""
    root = golden.extract("retry-dlq-4.9", tmp_path)
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    path = root / "config" / "consumerOffset.json"
    with StoreView.open(root) as view:
        topic = next(name for name, _ in view.queues() if name.startswith("%RETRY%"))
    group = topic.removeprefix("%RETRY%")
    path.write_text(json.dumps({"offsetTable": {f"{topic}@{group}": {"0": 1_000}}}))
    return group


@pytest.mark.slow
def test_retries_beside_progress_beyond_their_end_are_unknown(restored):
    assert row_of(restored)["retry"] is None
    assert run("group", "describe", restored, "-o", "json").json()["retry"] is None
    assert restored not in run("group", "list", "--where", "retry == 0", "-o", "json").out
    why = run("group", "why", restored, "-o", "json").json()
    assert why["retries"]["ready"] is None
    assert "how many are ready is unknown" in run("group", "why", restored).out
    lags = run("lag", "show", "-g", restored, "--include-retry", "-o", "json").json()
    assert {row["retry"] for row in lags} == {None}
    plan = run("group", "alter", restored, "--retry-max-times", 1, "-n", "-o", "json")
    assert "how many retries wait is unknown" in plan.out + plan.err
