"""``topic create --from-file``, ``alter`` and ``delete``."""

import json
import re

import pytest

from storage.configs.dlq_acks import NOTHING_HANDLED, DlqAcksFile
from storage.configs.pending_commits import PendingCommits
from storage.configs.progress_table import QueueProgress
from storage.configs.topics import topics_file
from tests.support import golden
from tests.support.cli import run, start
from tests.support.consumers import eventually


def journal(store):
    lines = b"".join(path.read_bytes() for path in sorted((store / "rmqctl/journal").iterdir()))
    return [json.loads(line)["entry"] for line in lines.splitlines()]


def described(topic):
    return run("topic", "describe", topic, "-o", "json").json()


def version(store):
    return topics_file(store).read(0).data_version


@pytest.mark.slow
@pytest.mark.feature(101)
def test_what_is_named_changes_and_the_rest_stays(store):
    run("topic", "create", "orders", "--order")
    before = version(store)
    result = run("topic", "alter", "orders", "-w", 4, "--perm", 4, "-y", "-o", "json")
    assert result.code == 0, result.err
    assert [list(row.values())[:5] for row in result.json()] == [
        ["orders", "write_queue_nums", "8", "4", "queues from 4 on take no new messages"],
        ["orders", "perm", "6", "4", "sending will be refused"],
    ]
    assert all(row["applied"] for row in result.json())
    now = described("orders")
    assert [now["read_queues"], now["write_queues"], now["perm"], now["order"]] == [8, 4, 4, True]
    assert version(store).counter == before.counter + 1


def test_the_plan_tells_what_consumers_will_not_reach(store):
    run("topic", "create", "orders", "--queues", 4)
    run("produce", "orders", "--queue", 3, "-q", stdin=b"a\nb\n")
    (row,) = run("topic", "alter", "orders", "-r", 2, "-n", "-o", "json").json()
    assert row["note"] == "queues from 2 on are no longer read; 2 messages lie there"
    assert row["applied"] is None
    assert described("orders")["read_queues"] == 4


@pytest.mark.slow
@pytest.mark.feature(144)
def test_nothing_changes_without_a_yes(store):
    run("topic", "create", "orders")
    result = run("topic", "alter", "orders", "--queues", 2)
    assert result.code == 7
    assert "read_queue_nums\t8\t2" in result.out
    assert "add --yes" in result.err
    assert described("orders")["read_queues"] == 8


@pytest.mark.slow
def test_a_topic_that_is_so_already_stays_untouched(store):
    run("topic", "create", "orders")
    before = (store / "config/topics.json").read_bytes()
    result = run("topic", "alter", "orders", "--queues", 8, "-y")
    assert (result.code, result.err) == (0, "there is nothing to change\n")
    assert (store / "config/topics.json").read_bytes() == before


@pytest.mark.slow
@pytest.mark.feature(149)
def test_a_change_is_in_the_journal_with_both_values(store):
    run("topic", "create", "orders")
    run("topic", "alter", "orders", "--perm", 4, "-y", "--reason", "ticket 7")
    entry = journal(store)[-1]
    assert (entry["command"], entry["topic"], entry["reason"]) == (
        "topic alter",
        "orders",
        "ticket 7",
    )
    assert (entry["old"]["perm"], entry["new"]["perm"]) == (6, 4)


def test_members_of_the_file_that_are_not_known_here_stay(tmp_path):
    root = golden.extract("basic-5.3", tmp_path)
    name = run("topic", "list", "-S", root, "-o", "json", "--where", "kind=normal").json()[0][
        "topic"
    ]
    before = (root / "config/topics.json").read_text()
    assert run("topic", "alter", name, "--perm", 4, "-y", "-S", root).code == 0
    after = (root / "config/topics.json").read_text()
    assert before.count("attributes") == after.count("attributes") > 0


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["alter"], 2, "missing argument 'TOPIC...'"),
        (["alter", "t"], 2, "no setting to change"),
        (["alter", "nope", "--perm", "6"], 3, "topic nope does not exist"),
        (["alter", "TBW102", "--perm", "6"], 7, "belongs to the system"),
        (["alter", "t", "--perm", "3"], 2, "--perm: 3 is not one of"),
        (["alter", "t", "--queues", "0"], 2, "0 is not a number of queues"),
        (["delete", "nope"], 3, "topic nope does not exist"),
        (["delete", "TBW102"], 7, "belongs to the system"),
        (["delete", "a b"], 2, "has characters other than"),
        (["delete", "t", "--confirm", "T", "-y"], 7, "'T' is not 't'; nothing was changed"),
        (["stats", "--by", "day"], 2, "'day' is not one of topic, queue, hour"),
        (["stats", "nope"], 3, "topic nope does not exist"),
    ],
)
def test_what_can_not_be_is_one_sentence(store, args, code, sentence):
    run("topic", "create", "t")
    result = run("topic", *args, "-o", "json")
    assert (result.code, result.raw) == (code, b"")
    assert sentence in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--yes"], ["--confirm", "t"]])
def test_without_consent_the_plan_of_a_deletion_is_all(store, options):
    run("topic", "create", "t")
    result = run("topic", "delete", "t", *options, "-o", "json")
    assert (result.code, [row["applied"] for row in result.json()]) == (7, [None])
    missing = "--yes" if "--confirm" in options else "--confirm t --yes"
    assert f"nothing was changed: no terminal to ask on; add {missing} to proceed" in result.err
    assert run("topic", "describe", "t").code == 0


# -- from a file ------------------------------------------------------------------------------

FILES = {
    "names.txt": "a\n\n b  # the second\n",
    "topics.csv": "topic,queues,perm,order\na,2,4,true\nb,,,\n",
    "camel.csv": "topicName,readQueueNums,writeQueueNums\na,2,3\nb,8,8\n",
    "topics.jsonl": '{"topic":"a","read_queues":2,"write_queues":2}\n{"topic":"b"}\n',
    "topics.json": '[{"topicName":"a","readQueueNums":2,"writeQueueNums":2,"perm":6,'
    '"topicFilterType":"SINGLE_TAG","order":false},"b"]',
    "topics.yaml": "- {topic: a, queues: 2}\n- b\n",
}


@pytest.mark.feature(108)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("piped", [False, True])
def test_topics_are_created_from_a_file_of_any_form(store, tmp_path, name, piped):
    if piped and name.endswith(".yaml"):
        return  # standard input has no ending
    path = tmp_path / name
    path.write_text(FILES[name])
    source = "-" if piped else path
    stdin = FILES[name].encode() if piped else None
    result = run("topic", "create", "--from-file", source, "-o", "json", stdin=stdin)
    assert result.code == 0, result.err
    rows = {row["topic"]: row for row in result.json()}
    assert list(rows) == ["a", "b"]
    assert rows["a"]["read_queues"] == (8 if name == "names.txt" else 2)
    assert described("b")["read_queues"] == 8


def test_the_topics_of_another_store_can_be_made_here(store, tmp_path):
    old = golden.store("basic-4.9")
    result = run("topic", "create", "--from-file", old / "config/topics.json", "-o", "json")
    assert result.code == 0, result.err
    theirs = run("topic", "list", "-S", old, "-o", "json", "--where", "kind = normal").json()
    assert {row["topic"] for row in theirs} <= {row["topic"] for row in result.json()}
    piped = run("topic", "list", "--all", "-S", old, "-o", "csv").raw
    names = run("topic", "create", "--from-file", "-", stdin=piped)
    assert names.code == 7  # the system's own are among them


@pytest.mark.parametrize(
    ("name", "text", "code", "sentence"),
    [
        ("x.csv", "topic,queues\na,2\nb,many\n", 2, "x.csv line 3: queues 'many' is not a number"),
        ("x.csv", "topic,colour\na,red\n", 2, "x.csv line 2: a topic has no 'colour'"),
        ("x.jsonl", '{"queues":2}\n', 2, "x.jsonl line 1: topic is missing"),
        ("x.json", "{", 2, "x.json is malformed"),
        ("x.txt", "a\na b\n", 2, "x.txt line 2: topic 'a b' has characters other than"),
        ("x.txt", "# nothing\n", 2, "x.txt names no topic"),
        ("x.csv", "topic,perm\na,6\na,4\n", 2, "line 3: topic a is given twice"),
        ("x.csv", "topic,order\na,maybe\n", 2, "order 'maybe' is neither true nor false"),
        ("x.txt", "a\nTBW102\n", 7, "TBW102 belongs to the system"),
    ],
)
def test_an_entry_that_is_wrong_is_named_and_none_is_created(
    store, tmp_path, name, text, code, sentence
):
    (tmp_path / name).write_text(text)
    result = run("topic", "create", "--from-file", tmp_path / name)
    assert (result.code, result.raw) == (code, b"")
    assert sentence in result.err
    assert run("topic", "queues", "a").code == 3


def test_topics_of_a_file_are_one_change_of_the_table_with_an_entry_each(store, tmp_path):
    run("topic", "create", "before")
    table = store / "config/topics.json"
    as_it_was, counter = table.read_bytes(), version(store).counter
    (tmp_path / "x.txt").write_text("a\nbefore\nb\nc\n")
    result = run("topic", "create", "--from-file", tmp_path / "x.txt", "-o", "json")
    assert [row["created"] for row in result.json()] == [True, False, True, True]
    assert table.with_name("topics.json.bak").read_bytes() == as_it_was
    assert version(store).counter == counter + 3
    assert [entry["topic"] for entry in journal(store)] == ["before", "a", "b", "c"]


def test_a_file_that_is_not_there(store):
    result = run("topic", "create", "--from-file", "nope.csv")
    assert (result.code, result.err) == (3, "rmqctl: there is no file nope.csv\n")


# -- deleting ---------------------------------------------------------------------------------


@pytest.fixture
def orders(store):
    """A topic with messages that two groups have read."""
    run("topic", "create", "orders", "--queues", 2)
    run("produce", "orders", "-q", stdin=b"a\nb\nc\n")
    for group in ("one", "two"):
        run("consume", "orders", "-g", group, "-e")
    return store


def offsets():
    rows = run("offset", "list", "-o", "json", "--where", "topic = orders").json()
    return {row["group"] for row in rows}


@pytest.mark.feature(101)
@pytest.mark.slow
def test_a_topic_goes_as_with_rocketmq_and_offsets_stay(orders):
    msg_id = run("consume", "orders", "-e", "--count", 1, "-o", "json").json()[0]["offset_msg_id"]
    before = version(orders)
    result = run("topic", "delete", "orders", "--confirm", "orders", "-y", "-o", "json")
    assert result.code == 0, result.err
    rows = [(row["part"], row["group"], row["amount"], row["fate"]) for row in result.json()]
    assert rows == [
        ("settings", None, 1, "removed"),
        ("queues", None, 2, "removed"),
        ("messages", None, 3, "kept"),
        ("offsets", "one", 2, "kept"),
        ("offsets", "two", 2, "kept"),
    ]
    assert all(row["applied"] for row in result.json())
    assert run("topic", "queues", "orders").code == 3
    assert topics_file(orders).read(0).get("orders") is None
    assert version(orders).counter == before.counter + 1
    assert list((orders / "consumequeue/orders").iterdir()) == []
    assert offsets() == {"one", "two"}
    assert run("message", "get", msg_id, "-o", "json").json()["topic"] == "orders"


@pytest.mark.slow
def test_the_progress_of_groups_goes_too_if_that_is_wanted(orders):
    result = run("topic", "delete", "orders", "--confirm", "orders", "-y", "--remove-offsets")
    assert result.code == 0, result.err
    assert offsets() == set()
    assert '"orders@' not in (orders / "config/consumerOffset.json").read_text()
    moves = journal(orders)[-1]["moves"]
    assert {(move["group"], move["new"]) for move in moves} == {("one", None), ("two", None)}


@pytest.mark.slow
def test_offsets_that_a_killed_process_had_in_memory_can_be_brought_back(orders):
    (orders / "rmqctl/members").mkdir(exist_ok=True)
    notes = PendingCommits(orders / "rmqctl/members/dead.notes")
    notes.write(("orders@one", 0), QueueProgress(0, 50))
    notes.close()
    result = run("topic", "delete", "orders", "--confirm", "orders", "-y", "--remove-offsets")
    assert result.code == 0, result.err
    moves = journal(orders)[-1]["moves"]
    assert [m["old"] for m in moves if (m["group"], m["queue_id"]) == ("one", 0)] == [50]


@pytest.mark.slow
@pytest.mark.parametrize("group", ["one", "three"])
def test_offsets_that_only_a_killed_process_had_in_memory_are_forgotten_too(orders, group):
    (orders / "rmqctl/members").mkdir(exist_ok=True)
    notes = PendingCommits(orders / "rmqctl/members/dead.notes")
    for queue_id in range(9):
        notes.write((f"orders@{group}", queue_id), QueueProgress(0, 1))
    notes.close()
    words = ("topic", "delete", "orders", "--confirm", "orders", "--remove-offsets", "-o", "json")
    for more, applied in (("-n", None), ("-y", True)):
        rows = run(*words, more).json()
        assert [
            (row["part"], row["amount"], row["fate"], row["applied"])
            for row in rows
            if row["group"] == group
        ] == [("offsets", 9, "removed", applied)]
    assert offsets() == set()


@pytest.mark.slow
def test_a_topic_that_is_made_again_begins_at_0(orders):
    run("topic", "delete", "orders", "--confirm", "orders", "-y", "--remove-offsets")
    run("produce", "orders", "-q", stdin=b"new\n")
    assert run("consume", "orders", "-e").out == "new\n"
    assert run("consume", "orders", "-e", "-g", "one").out == "new\n"
    assert run("offset", "list", "-o", "json", "--where", "topic=orders and lag=0").json()


@pytest.mark.slow
def test_a_dry_run_deletes_nothing(orders):
    result = run("topic", "delete", "orders", "-n", "-o", "json")
    assert len(result.json()) == 5
    assert run("consume", "orders", "-e").lines == ["a", "b", "c"]


@pytest.mark.slow
def test_beside_a_member_that_reads_the_topic_nothing_is_deleted(orders):
    with start("consume", "orders", "-g", "live") as process:
        try:
            process.stdout.readline()
            result = run("topic", "delete", "orders", "--confirm", "orders", "-y", "-o", "json")
            assert (result.code, result.raw) == (7, b"")
            assert f"process {process.pid} has a consumer of group live" in result.err
            assert "reads topic orders; end it first ('rmqctl group clients live'" in result.err
            assert run("topic", "delete", "orders", "-n").code == 0
        finally:
            process.terminate()
            process.wait(30)
    assert run("consume", "orders", "-e").lines == ["a", "b", "c"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--remove-offsets"]])
def test_a_member_of_another_topic_holds_nothing_back(orders, options):
    run("topic", "create", "empty")
    run("topic", "create", "other")
    run("produce", "other", "-q", stdin=b"x\n")
    dlq = "%DLQ%one"
    run("produce", dlq, "--queue", 0, "-q", stdin=b"d\n")
    DlqAcksFile(orders).mark(dlq, {0: [(0, 1)]})
    with start("consume", "other", "-g", "live", "--from-where", "first") as process:
        try:
            assert process.stdout.readline() == b"x\n"
            for topic in ("empty", "orders", dlq):
                delete = ["topic", "delete", topic, "--confirm", topic, "-y", "-o", "json"]
                result = run(*delete, *options)
                assert result.code == 0, result.err
                assert all(row["applied"] for row in result.json())
                assert run("topic", "describe", topic).code == 3
            assert offsets() == (set() if options else {"one", "two"})
            assert list((orders / "consumequeue/orders").iterdir()) == []
            assert DlqAcksFile(orders).read(dlq).get(0) in (None, NOTHING_HANDLED)
            run("produce", "orders", "-q", stdin=b"new\n")
            run("produce", "other", "-q", stdin=b"y\n")
            assert process.stdout.readline() == b"y\n"
            assert run("consume", "orders", "-e").lines == ["new"]
            assert run("store", "fsck", "-o", "json", "-q").json()["ok"]
        finally:
            process.terminate()
            process.wait(30)
    assert run("consume", "orders", "-e").lines == ["new"]
    assert run("store", "fsck", "-o", "json", "-q").json()["ok"]


@pytest.mark.slow
def test_a_producer_of_the_topic_goes_on_with_a_new_one(orders):
    """It has the topic's queue files open; what it sends afterwards makes the topic again."""
    with start("produce", "orders", "-q") as process:
        try:
            for n in range(3):
                process.stdin.write(b"before-%d\n" % n)
            process.stdin.flush()
            eventually(lambda: len(run("consume", "orders", "-e").lines) == 6)
            result = run("topic", "delete", "orders", "--confirm", "orders", "-y", "-o", "json")
            assert result.code == 0, result.err
            assert run("topic", "describe", "orders").code == 3
            process.stdin.write(b"after\n")
            process.stdin.close()
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert run("consume", "orders", "-e").lines == ["after"]
    assert run("store", "fsck", "-o", "json", "-q").json()["ok"]


@pytest.mark.slow
def test_new_dead_letters_are_not_taken_for_handled_ones(store):
    run("produce", "t", "-q", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-c", 1, "--delay-level", -1, "--exec", "false")
    DlqAcksFile(store).mark("%DLQ%g", {0: [(0, 1)]})
    assert run("topic", "delete", "%DLQ%g", "--confirm", "%DLQ%g", "-y").code == 0
    assert DlqAcksFile(store).read("%DLQ%g")[0].ranges() == []


# -- figures ----------------------------------------------------------------------------------


@pytest.mark.feature(103, 117)
@pytest.mark.slow
def test_bytes_of_topics_add_up_to_the_log(orders):
    run("produce", "large", "-q", stdin=b"x" * 5000 + b"\n")
    run("topic", "delete", "orders", "--confirm", "orders", "-y")
    rows = run("topic", "usage", "-o", "json").json()
    info = run("store", "info", "-o", "json").json()
    log = info["commitlog"]["max_offset"] - info["commitlog"]["min_offset"]
    assert [row["topic"] for row in rows] == ["%RETRY%one", "%RETRY%two", "large", None][-2:]
    assert sum(row["bytes"] for row in rows) == log
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    message = run("consume", "large", "-e", "-o", "json").json()[0]
    assert rows[-2]["bytes"] == message["store_size"]
    assert rows[-2]["oldest_timestamp"] == message["store_timestamp"]
    assert rows[-2]["queue_bytes"] > 0


@pytest.mark.feature(104, 105)
def test_sizes_rates_and_skew_are_those_of_the_messages(store):
    run("topic", "create", "t", "--queues", 2)
    run("produce", "t", "--queue", 0, "-q", stdin=b"a\nbb\nccc\n")
    run("produce", "t", "--queue", 1, "-q", stdin=b"dddd\n")
    messages = run("consume", "t", "-e", "-o", "json").json()
    sizes = [message["store_size"] for message in messages]
    times = [message["store_timestamp"] for message in messages]
    (row,) = run("topic", "stats", "t", "-o", "json").json()
    assert (row["messages"], row["bytes"], row["skew"]) == (4, sum(sizes), 1.5)
    assert row["average_size"] == round(sum(sizes) / 4)
    span = max(times) - min(times)
    assert row["rate"] == (pytest.approx(4000 / span) if span else None)
    queues = run("topic", "stats", "t", "--by", "queue", "-o", "json").json()
    assert [(row["queue_id"], row["messages"], row["share"]) for row in queues] == [
        (0, 3, 0.75),
        (1, 1, 0.25),
    ]


def test_hours_hold_every_message_once():
    store = golden.store("basic-4.9")
    for zone in ("UTC", "Asia/Kathmandu"):
        rows = run("topic", "stats", "--by", "hour", "-o", "json", "-S", store, "--tz", zone).json()
        whole = run("topic", "stats", "-o", "json", "-S", store).json()
        for total in whole:
            hours = [row for row in rows if row["topic"] == total["topic"]]
            assert sum(row["messages"] for row in hours) == total["messages"]
            assert sum(row["bytes"] for row in hours) == total["bytes"]
            for row in hours:
                start = row["from_timestamp"]
                assert start <= row["first_timestamp"] <= row["last_timestamp"] < start + 3_600_000
                offset = 45 if zone == "Asia/Kathmandu" else 0
                assert (start // 60_000 + offset) % 60 == 0


@pytest.mark.parametrize("words", [("topic", "create"), ("group", "create")])
def test_after_the_last_counter_it_wraps_as_javas_and_no_change_is_lost(store, words):
    assert run(*words, "first").code == 0
    kind = words[0]
    name = "topics.json" if kind == "topic" else "subscriptionGroup.json"
    path = store / "config" / name
    text = re.sub(r'"counter":\d+', f'"counter":{(1 << 63) - 1}', path.read_text())
    path.write_text(text)
    for fresh in ("second", "third"):
        assert run(*words, fresh).code == 0
        assert fresh in run(kind, "list", "-o", "json").out
    assert f'"counter":{1 - (1 << 63)}' in path.read_text()


@pytest.mark.parametrize("suffix", ["D", "F", ""])
def test_a_number_that_no_file_can_hold_is_damage_before_a_change(store, suffix):
    run("topic", "create", "orders")
    path = store / "config/topics.json"
    before = path.read_text().replace("{", f'{{"x":1e999{suffix},', 1)
    path.write_text(before)
    path.with_name("topics.json.bak").unlink(missing_ok=True)
    result = run("topic", "create", "fresh")
    assert result.code == 4
    assert "topics.json" in result.err
    assert path.read_text() == before
    assert [entry["topic"] for entry in journal(store)] == ["orders"]
    path.unlink()
