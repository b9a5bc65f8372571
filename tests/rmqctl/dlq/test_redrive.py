"""``dlq redrive``: what is sent, where to, and what is never sent."""

import json

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.send.message_builder import stored_again
from broker.send.send import prepared
from storage.configs.journal import Journal
from storage.format.message import Message
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.dead_letters import bury
from tests.support.java_lock import java_lock

DO = ("--execute", "--yes")


@pytest.fixture
def dead(store):
    """Four dead letters of group g, read from topic t."""
    run("topic", "create", "t", "--queues", 1)
    return bury(
        store,
        "g",
        [
            Message("t", f"body {n}".encode(), tags=f"T{n % 2}", keys=f"k{n} all", flag=n)
            for n in range(4)
        ],
    )


def messages(topic):
    return run("consume", topic, "-e", "-o", "json", "-q").json()


def redriven(topic):
    return [message for message in messages(topic) if "RMQCTL_REDRIVES" in message["properties"]]


def unhandled(group="g"):
    return [row["queue_offset"] for row in run("dlq", "browse", group, "-o", "json", "-q").json()]


@pytest.mark.slow
@pytest.mark.feature(87)
def test_one_goes_back_to_where_it_was_read_from(dead, store):
    dead_letter = dead[1]
    done = run("dlq", "redrive", "g", dead_letter.msg_id, *DO, "-o", "json")
    (receipt,) = done.json()
    assert done.code == 0
    (message,) = redriven("t")
    assert (message["body"], message["tags"], message["keys"], message["flag"]) == (
        "body 1",
        "T1",
        ["k1", "all"],
        1,
    )
    assert (receipt["target"], receipt["new_msg_id"], receipt["new_queue_offset"]) == (
        "t",
        message["msg_id"],
        message["queue_offset"],
    )
    assert receipt["applied"] is True
    assert unhandled() == [0, 2, 3]


@pytest.mark.feature(96)
def test_a_copy_leads_back_to_its_dead_letter_and_to_the_first_message(dead):
    dead_letter = dead[0]
    (receipt,) = run("dlq", "redrive", "g", 0, *DO, "-o", "json").json()
    (message,) = redriven("t")
    assert message["msg_id"] != dead_letter.msg_id, "it is a message of its own"
    lineage = {k: v for k, v in message["properties"].items() if k.startswith("RMQCTL_")}
    assert lineage == {
        "RMQCTL_REDRIVES": "1",
        "RMQCTL_REDRIVE_DEAD": dead_letter.offset_msg_id,
        "RMQCTL_REDRIVE_ORIGIN": messages("t")[0]["offset_msg_id"],
        "RMQCTL_REDRIVE_UNIQUE": dead_letter.msg_id,
        "RMQCTL_REDRIVE_RUN": receipt["run"],
    }
    assert set(message["properties"]) - set(lineage) == {"TAGS", "KEYS", "UNIQ_KEY", "CLUSTER"}


def test_as_a_retry_it_is_the_same_message_for_this_group_alone(dead):
    run("dlq", "redrive", "g", 3, "--target", "retry", *DO)
    (message,) = messages("%RETRY%g")
    assert message["msg_id"] == dead[3].msg_id
    assert message["reconsume_times"] == 0, "all its attempts lie before it"
    assert message["born_timestamp"] == dead[3].born_timestamp
    assert message["properties"]["RETRY_TOPIC"] == "t"
    assert redriven("t") == []


@pytest.mark.slow
@pytest.mark.feature(90)
def test_another_topic_must_exist(dead):
    missing = run("dlq", "redrive", "g", "--all", "--target", "elsewhere", *DO)
    assert (missing.code, missing.out) == (3, "")
    run("topic", "create", "elsewhere")
    run("dlq", "redrive", "g", "--all", "--target", "elsewhere", *DO)
    assert sorted(m["body"] for m in messages("elsewhere")) == [f"body {n}" for n in range(4)]
    filled = run("dlq", "redrive", "g", "0", "--target", "%DLQ%g", *DO)
    assert (filled.code, "reserved for the broker" in filled.err) == (2, True)


@pytest.mark.feature(88, 89)
def test_filters_choose(dead):
    run("dlq", "redrive", "g", "--tag", "T0", *DO)
    assert [message["body"] for message in redriven("t")] == ["body 0", "body 2"]
    run("dlq", "redrive", "g", "--body", "body 3", *DO)
    assert unhandled() == [1]


@pytest.mark.feature(92)
@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--dry-run", "--execute", "--yes")])
def test_without_consent_nothing_is_sent(dead, store, options):
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    done = run("dlq", "redrive", "g", "--all", *options, "-o", "json")
    assert done.code == (0 if options else 7)
    assert [(row["queue_offset"], row["target"], row["body_size"]) for row in done.json()] == [
        (n, "t", 6) for n in range(4)
    ]
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_nothing_is_sent_unasked(dead):
    assert run("dlq", "redrive", "g", *DO).code == 2, "nothing defaults to all"
    refused = run("dlq", "redrive", "g", "--all", "--execute")
    assert (refused.code, "add --yes" in refused.err) == (7, True)
    assert redriven("t") == []


@pytest.mark.slow
def test_what_was_handled_is_sent_again_only_if_it_is_named(dead):
    run("dlq", "redrive", "g", "--all", *DO)
    done = run("dlq", "redrive", "g", "--all", *DO)
    assert (done.code, "nothing to change" in done.err) == (0, True)
    assert len(redriven("t")) == 4
    run("dlq", "redrive", "g", "2", *DO)
    assert len(redriven("t")) == 5


@pytest.mark.feature(98)
@pytest.mark.slow
def test_a_message_that_dies_again_and_again_is_left_alone(dead, store):
    from broker.embedded.broker import EmbeddedBroker
    from tests.support.dead_letters import give_back

    for times in (1, 2, 3):
        newest = max(unhandled())
        assert run("dlq", "redrive", "g", newest, *DO).code == 0
        (message,) = [m for m in redriven("t") if m["properties"]["RMQCTL_REDRIVES"] == str(times)]
        with EmbeddedBroker.open(store) as broker:
            again = broker.view_message(message["commitlog_offset"])
            assert again is not None
            give_back(broker, "g", again)
    newest = max(unhandled())
    guarded = run("dlq", "redrive", "g", newest, *DO, "-o", "json")
    assert (guarded.code, guarded.json()[0]["applied"]) == (1, False)
    assert "redriven 3 times" in guarded.json()[0]["note"]
    assert newest in unhandled()
    assert run("dlq", "redrive", "g", newest, "--max-redrives", 4, *DO).code == 0


@pytest.mark.slow
def test_what_was_sent_before_is_told_and_counts(dead):
    run("topic", "create", "t2")
    again = ("dlq", "redrive", "g", 0, "--target", "t2")
    runs: list[str] = []
    for times in range(3):
        (row,) = run(*again, "-o", "json").json()
        runs.sort()  # two of one second have no order
        told = f"handled before; sent before by {', '.join(runs)}" if runs else None
        assert (row["redrives"], row["note"], row["target"]) == (times, told, "t2")
        runs.append(run(*again, *DO, "-o", "json").json()[0]["run"])
    (row,) = run(*again, "-o", "json").json()
    assert (row["redrives"], row["target"]) == (3, None)
    assert row["note"] == (
        "not sent: redriven 3 times already (--max-redrives); handled before; "
        f"sent before by {', '.join(sorted(runs))}"
    )
    (receipt,) = run(*again, *DO, "-o", "json").json()
    assert receipt["applied"] is False
    assert len(messages("t2")) == 3
    assert run(*again, "--max-redrives", 4, *DO).code == 0
    assert len(messages("t2")) == 4


def test_what_was_marked_by_hand_is_told_and_counts_for_nothing(dead):
    run("dlq", "ack", "g", 1, "-y")
    (row,) = run("dlq", "redrive", "g", 1, "--set-property", "a=b", "-o", "json").json()
    assert (row["redrives"], row["note"], row["target"]) == (0, "a is b; handled before", "t")


@pytest.mark.slow
def test_a_mark_that_was_taken_back_does_not_hide_what_was_sent(dead):
    (receipt,) = run("dlq", "redrive", "g", 1, *DO, "-o", "json").json()
    run("dlq", "ack", "g", 1, "--undo", "-y")
    rows = run("dlq", "redrive", "g", "--all", "-o", "json").json()
    assert [(row["redrives"], row["note"]) for row in rows] == [
        (0, None),
        (1, f"sent before by {receipt['run']}"),
        (0, None),
        (0, None),
    ]


@pytest.mark.slow
def test_a_new_dead_letter_in_the_place_of_one_that_was_sent_was_never_sent(dead, store):
    run("dlq", "redrive", "g", 0, *DO)
    run("topic", "delete", "%DLQ%g", "--confirm", "%DLQ%g", "-y")
    bury(store, "g", [Message("t", b"new")])
    (row,) = run("dlq", "redrive", "g", 0, "-o", "json").json()
    assert (row["redrives"], row["note"]) == (0, None)


def test_an_empty_target_is_refused(dead):
    done = run("dlq", "redrive", "g", 0, "--target", "", *DO)
    assert (done.code, "--target is empty" in done.err) == (2, True)
    assert redriven("t") == []


def test_an_origin_that_is_gone_is_said_and_the_others_go(dead, store):
    bury(store, "g", [Message("gone", b"x")])
    path = store / "config" / "topics.json"
    document = json.loads(path.read_text())
    del document["topicConfigTable"]["gone"]
    path.write_text(json.dumps(document))
    done = run("dlq", "redrive", "g", "--all", *DO, "-o", "json")
    assert done.code == 8
    assert [row["applied"] for row in done.json()] == [True, True, True, True, False]
    assert (
        "topic gone has no settings: 'rmqctl topic create gone' makes them"
        in done.json()[4]["note"]
    )
    assert unhandled() == [4]


def test_a_separator_in_a_value_goes_to_retry_and_nowhere_else(dead, store):
    """A Java broker takes U+0001 in a value."""
    with EmbeddedBroker.open(store) as broker:
        encoded = b"k\x01a\x01b\x02" + dead[0].property_bytes
        assert broker.store is not None
        broker.store.put(prepared([stored_again(dead[0], "%DLQ%g", 0, encoded)]))
    one = ("dlq", "redrive", "g", 4, "-o", "json")
    (plan,) = run(*one, "--dry-run").json()
    note = "not sent: the value of property k holds U+0001, which a new message may not have; use "
    assert (plan["target"], plan["note"]) == (
        None,
        f"{note}--set-property k=VALUE, or --target retry",
    )
    (plan,) = run(*one, "--dry-run", "--set-property", "k=ab").json()
    assert plan["target"] == "t"
    done = run(*one, "--target", "retry", *DO)
    (receipt,) = done.json()
    assert (done.code, receipt["applied"], receipt["target"]) == (0, True, "%RETRY%g")


@pytest.mark.feature(100)
def test_an_entry_in_the_journal_says_who_did_it_and_why(dead, store):
    run("dlq", "redrive", "g", "0", "--target", "retry", "--reason", "fixed it", *DO)
    (entry,) = [e for e in Journal(store).entries() if e["command"] == "dlq redrive"]
    assert (entry["group"], entry["what"], entry["reason"]) == ("g", "redrive", "fixed it")
    assert (entry["new"]["target"], entry["new"]["messages"]) == ("retry", 1)


@pytest.mark.slow
def test_beside_a_java_broker_nothing_is_sent_but_the_plan_is_shown(dead, store):
    with java_lock(store):
        assert run("dlq", "redrive", "g", "--all", "-n").code == 0
        refused = run("dlq", "redrive", "g", "--all", *DO)
        assert (refused.code, refused.out) == (5, "")
    with StoreView.open(store) as view:
        assert view.max_offset_in_queue("t", 0) == 4


@pytest.mark.slow
def test_the_store_of_a_real_broker_is_redriven(tmp_path):
    from tests.support import golden

    root = golden.extract("retry-dlq-4.9", tmp_path)
    rows = run("dlq", "redrive", "g-orderly", "--all", *DO, "-S", root, "-o", "json").json()
    assert [row["applied"] for row in rows] == [True] * 3
    (group, *_) = run("dlq", "list", "-S", root, "-o", "json").json()
    assert (group["group"], group["unhandled"]) == ("g-flaky", 6)
    assert run("store", "fsck", "-S", root, "-q").code == 0
    found = run("consume", "GoldenOrdered", "-e", "-S", root, "-o", "json").json()
    copies = [m for m in found if "RMQCTL_REDRIVES" in m["properties"]]
    wanted = [
        m for m in golden.manifest("retry-dlq-4.9")["messages"] if m["topic"] == "%DLQ%g-orderly"
    ]
    assert [copy["flag"] for copy in copies] == [m["flag"] for m in wanted]
    assert [copy["body"] for copy in copies] == [m["bodyText"] for m in wanted]
    assert [copy["properties"]["n"] for copy in copies] == [m["properties"]["n"] for m in wanted]
