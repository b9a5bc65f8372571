import json

import pytest

from storage.configs.topics import topics_file
from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import run

LIST_FIELDS = ["topic", "kind", "read_queues", "write_queues", "perm", "messages"]
QUEUE_FIELDS = [
    *("topic", "broker", "queue_id", "min_offset", "max_offset", "count"),
    *("first_timestamp", "last_timestamp"),
]


def listed(*options):
    result = run("topic", "list", "-o", "json", *options)
    assert result.code == 0, result.err
    return {row["topic"]: row for row in result.json()}


@pytest.mark.feature(101)
def test_the_list_has_every_topic_with_kind_queues_and_messages(store):
    run("produce", "orders", stdin=b"a\nb\nc\n")
    assert list(listed()) == ["orders"]
    rows = listed("--all")
    assert list(rows["orders"]) == LIST_FIELDS
    assert list(rows["orders"].values()) == ["orders", "normal", 4, 4, 6, 3]
    assert rows["SCHEDULE_TOPIC_XXXX"]["kind"] == rows["DefaultCluster"]["kind"] == "system"
    assert list(rows) == sorted(rows)


def test_retry_and_dead_letter_topics_are_told_apart():
    rows = listed("--all", "-S", golden.store("retry-dlq-4.9"))
    kinds = {name.split("%")[1]: row["kind"] for name, row in rows.items() if "%" in name}
    assert kinds == {"RETRY": "retry", "DLQ": "dlq"}


def test_a_topic_has_eight_queues_unless_told_otherwise(store):
    result = run(
        "topic", "create", "orders", "payments", "-o", "json", "--columns", "topic,created"
    )
    assert result.code == 0, result.err
    assert result.json() == [
        {"topic": "orders", "created": True},
        {"topic": "payments", "created": True},
    ]
    assert listed()["orders"]["read_queues"] == listed()["payments"]["write_queues"] == 8


@pytest.mark.feature(101)
def test_queues_and_perm_are_those_of_the_options(store):
    assert run("topic", "create", "a", "--queues", 2, "--perm", 4).code == 0
    assert run("topic", "create", "-t", "b", "-r", 3, "-w", 1, "--order").code == 0
    rows = listed()
    assert [rows["a"][field] for field in LIST_FIELDS[2:5]] == [2, 2, 4]
    assert [rows["b"][field] for field in LIST_FIELDS[2:5]] == [3, 1, 6]
    assert run("topic", "describe", "b", "-o", "json").json()["order"] is True


def test_creating_a_topic_again_changes_nothing(store):
    run("topic", "create", "orders")
    before = (store / "config/topics.json").read_bytes()
    result = run("topic", "create", "orders", "-o", "json")
    assert (result.code, result.json()[0]["created"]) == (0, False)
    assert (store / "config/topics.json").read_bytes() == before


def test_a_topic_that_is_there_with_other_settings_is_refused_and_none_is_made(store):
    run("topic", "create", "orders")
    result = run("topic", "create", "new", "orders", "--queues", 2)
    assert result.code == 7
    assert "topic orders exists already with 8 read and 8 write queues" in result.err
    assert "new" not in listed()


def test_a_dry_run_creates_nothing(store):
    result = run("topic", "create", "orders", "-n", "-o", "json")
    assert (result.code, result.json()[0]["created"]) == (0, None)
    said = f"store {store} (variable RMQCTL_STORE)\ndry run: nothing was created\n"
    assert result.err == said
    assert "orders" not in listed()


def test_a_dry_run_tells_what_is_there_already(store):
    run("topic", "create", "orders")
    result = run("topic", "create", "orders", "payments", "-n", "-o", "json")
    assert [row["created"] for row in result.json()] == [False, None]


def test_topics_that_are_made_and_not_shown_are_spoken_of(store):
    result = run("topic", "create", "orders", "payments", "-o", "json", "--limit", 1)
    assert [row["topic"] for row in result.json()] == ["orders"]
    assert "1 of 2 rows of the result are not shown" in result.err
    assert {"orders", "payments"} <= listed().keys()


@pytest.mark.feature(149)
def test_creating_is_noted_in_the_journal_with_its_reason(store):
    run("topic", "create", "orders", "--reason", "ticket 7")
    (path,) = (store / "rmqctl/journal").iterdir()
    entry = json.loads(path.read_text())["entry"]
    assert (entry["topic"], entry["reason"], entry["old"]) == ("orders", "ticket 7", None)


def test_creating_opens_no_log_and_leaves_no_sign_of_a_writer(tmp_path):
    root = golden.extract("unclean-4.9", tmp_path)
    log = sorted((root / "commitlog").iterdir())[-1]
    before = log.stat().st_mtime_ns
    assert run("-S", root, "topic", "create", "orders").code == 0
    assert (root / "abort").exists()
    assert log.stat().st_mtime_ns == before
    assert not (root / "rmqctl/shared").exists()
    made = topics_file(root).read(0).get("orders")
    assert made is not None
    assert made.read_queue_nums == 8


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["create"], 2, "missing argument 'TOPIC...'"),
        (["create", "a b"], 2, "topic 'a b' has characters other than"),
        (["create", "x" * 128], 2, "128"),
        (["create", "x", "--queues", "0"], 2, "0 is not a number of queues"),
        (["create", "x", "--perm", "1"], 2, "--perm: 1 is not one of"),
        (["create", "TBW102"], 7, "belongs to the system"),
        (["queues", "nope"], 3, "topic nope does not exist in"),
        (["describe", "-t", "nope"], 3, "topic nope does not exist in"),
        (["queues", "a/b"], 2, "topic 'a/b' has characters other than"),
    ],
)
def test_what_can_not_be_is_one_sentence(store, args, code, sentence):
    result = run("topic", *args)
    assert result.code == code
    assert sentence in result.err
    assert result.err.count("\n") == 1


@pytest.mark.feature(102)
def test_queues_show_bounds_and_times(store):
    run("produce", "orders", "--queue", 1, stdin=b"a\nb\n")
    result = run("topic", "queues", "orders", "-o", "json")
    rows = result.json()
    assert [list(row) for row in rows] == [QUEUE_FIELDS] * 4
    assert [row["count"] for row in rows] == [0, 2, 0, 0]
    with StoreView.open(store) as view:
        times = [view.store_timestamp("orders", 1, offset) for offset in (0, 1)]
    assert [rows[1]["first_timestamp"], rows[1]["last_timestamp"]] == times
    assert rows[0]["first_timestamp"] is None


@pytest.mark.slow
def test_without_names_all_topics_are_shown_but_no_thousand_empty_queues(store):
    run("produce", "orders", stdin=b"a\n")
    run("topic", "create", "empty", "--queues", 2)
    rows = run("topic", "queues", "-o", "json").json()
    assert [row["topic"] for row in rows] == ["empty"] * 2 + ["orders"] * 4
    named = run("topic", "queues", "TBW102", "-t", "empty", "-o", "json").json()
    assert [row["topic"] for row in named] == ["TBW102"] * 8 + ["empty"] * 2


@pytest.mark.feature(102, 110)
@pytest.mark.parametrize(
    "name", ["basic-4.9", "basic-5.3", "small-files-4.9", "transaction-4.9", "torn-half-record-4.9"]
)
def test_bounds_and_times_are_those_that_rocketmq_tells(name):
    result = run("topic", "queues", "--all", "-o", "json", "-S", golden.store(name))
    rows = {(row["topic"], row["queue_id"]): row for row in result.json()}
    for expected in golden.manifest(name)["queues"]:
        if expected["topic"] == "SCHEDULE_TOPIC_XXXX" and not expected["maxOffset"]:
            continue  # RocketMQ shows all eighteen
        row = rows[expected["topic"], expected["queueId"]]
        assert row["min_offset"] == expected["minOffset"]
        assert row["max_offset"] == expected["maxOffset"]
        if row["count"]:
            assert row["first_timestamp"] == expected["earliestMessageTime"]
        else:
            assert row["first_timestamp"] is row["last_timestamp"] is None


@pytest.mark.slow
def test_one_topic_is_an_object_and_several_are_an_array(store):
    run("produce", "orders", stdin=b"a\n")
    run("consume", "orders", "-e", "-g", "readers")
    one = run("topic", "describe", "orders", "-o", "json").json()
    assert (one["topic"], one["messages"], one["groups"]) == ("orders", 1, ["readers"])
    assert one["first_timestamp"] == one["last_timestamp"] is not None
    run("topic", "create", "empty")
    several = run("topic", "describe", "orders", "empty", "-o", "json").json()
    assert [row["messages"] for row in several] == [1, 0]
    assert several[1]["first_timestamp"] is None
