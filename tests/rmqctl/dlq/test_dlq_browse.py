"""``dlq show``, ``groups`` and ``export``."""

import json

import pytest

from storage.format.message import Message
from tests.support import golden
from tests.support.cli import run
from tests.support.dead_letters import bury


@pytest.fixture
def dead(store):
    return bury(
        store,
        "g",
        [
            Message("orders", b'{"id": 1, "sum": 2}', tags="A", keys="k0 all"),
            Message("orders", b'{"sum": 2, "id": 1}', tags="B", keys="k1 all"),
            Message("bills", b"\xff\x00", tags="A"),
            Message("bills", b"text", tags="A"),
            Message("bills", b"text", tags="A"),
        ],
        ["order 17 of '7F000001' failed", "order 18 of 'x y' failed", None, None, "down"],
    )


def groups(*options):
    rows = run("dlq", "groups", "g", "-o", "json", *options).json()
    return {row["value"]: row["count"] for row in rows}


@pytest.mark.feature(95)
def test_groups_by_reason_count_each_text_and_the_unknown(dead):
    assert groups() == {
        None: 2,
        "RuntimeError: order 17 of '7F000001' failed": 1,
        "RuntimeError: order 18 of 'x y' failed": 1,
        "RuntimeError: down": 1,
    }
    first = run("dlq", "groups", "g", "-o", "json").json()[0]
    assert first == {
        "value": None,
        "count": 2,
        "share": 0.4,
        "first_timestamp": dead[2].store_timestamp,
        "last_timestamp": dead[3].store_timestamp,
        "topics": ["bills"],
        "example": dead[3].msg_id,
    }


def test_a_shape_leaves_out_what_differs_from_case_to_case(dead):
    assert groups("--by", "shape") == {
        "RuntimeError: order * of * failed": 2,
        "body: binary": 1,
        "body: text": 1,
        "RuntimeError: down": 1,
    }


def test_without_reasons_the_shape_is_the_form_of_the_body(store):
    bodies = [b'{"id": 1, "sum": 2}', b'{"sum": "x", "id": []}', b"[1]", b"", b"a\nb"]
    bury(store, "g", [Message("t", body) for body in bodies], [None])
    assert groups("--by", "shape") == {
        "body: JSON {id, sum}": 2,
        "body: JSON array": 1,
        "body: empty": 1,
        "body: text": 1,
    }


@pytest.mark.slow
@pytest.mark.feature(97)
def test_other_groups(dead):
    assert groups("--by", "tag") == {"A": 4, "B": 1}
    assert groups("--by", "key") == {None: 3, "all": 2, "k0": 1, "k1": 1}
    assert groups("--by", "host") == {"127.0.0.1": 5}
    assert groups("--by", "age") == {"below 1m": 5}
    assert set(groups("--by", "hour", "--tz", "UTC").values()) <= {5, 4, 3, 2, 1}
    assert groups("--tag", "B") == {"RuntimeError: order 18 of 'x y' failed": 1}
    run("dlq", "ack", "g", "0", "-y")
    assert groups("--by", "tag") == {"A": 3, "B": 1}
    assert groups("--by", "tag", "--all") == {"A": 4, "B": 1}
    assert run("dlq", "groups", "g", "--by", "colour").code == 2


@pytest.mark.slow
@pytest.mark.feature(96)
def test_one_dead_letter_in_full(dead):
    dead_letter = dead[1]
    for wanted in (
        dead_letter.msg_id,
        dead_letter.offset_msg_id,
        dead_letter.offset_msg_id.lower(),
        "1",
    ):
        shown = run("dlq", "show", "g", wanted, "-o", "json").json()
        assert (shown["group"], shown["queue_offset"]) == ("g", 1)
    shown = run("dlq", "show", "g", "1", "-o", "json").json()
    assert shown["body"] == '{"sum": 2, "id": 1}'
    assert shown["properties"] == dead_letter.properties
    assert shown["reason"]["class"] == "RuntimeError"
    assert shown["reason"]["message"] == "order 18 of 'x y' failed"
    assert shown["origin"]["topic"] == "orders"
    first = run("message", "get", shown["origin"]["msg_id"], "-o", "json").json()
    assert (first["queue_id"], first["queue_offset"]) == (
        shown["origin"]["queue_id"],
        shown["origin"]["queue_offset"],
    )
    assert [event["what"] for event in shown["life"]] == ["STORED", "DEAD"]
    assert run("dlq", "show", "g", "99").code == 3
    assert run("dlq", "show", "g", "7F" * 16).code == 3


@pytest.mark.slow
def test_the_life_goes_on_when_it_was_redriven(dead):
    (receipt,) = run("dlq", "redrive", "g", "1", "--execute", "-y", "-o", "json").json()
    life = run("dlq", "show", "g", "1", "-o", "json").json()["life"]
    assert [event["what"] for event in life] == ["STORED", "DEAD", "REDRIVEN"]
    assert (life[2]["topic"], life[2]["msg_id"]) == ("orders", receipt["new_msg_id"])
    shown = run("dlq", "show", "g", "1", "-o", "table").lines
    assert shown[-1].split()[2] == "REDRIVEN"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retry-dlq-4.9", "retry-dlq-5.3"])
def test_dead_letters_of_real_brokers_have_no_reason_but_all_the_rest(name):
    store = golden.store(name)
    dead_letters = [
        m for m in golden.manifest(name)["messages"] if m["topic"].startswith("%DLQ%g-flaky")
    ]
    for dead_letter in dead_letters:
        unique = dead_letter["properties"]["UNIQ_KEY"]
        shown = run("dlq", "show", "g-flaky", unique, "-S", store, "-o", "json").json()
        assert shown["reason"] is None
        assert shown["offset_msg_id"] == dead_letter["offsetMsgId"]
        assert shown["properties"] == dead_letter["properties"]
        assert shown["body_size"] == dead_letter["bodyLength"]


def test_a_topic_of_an_impossible_group_is_listed_like_any_other(dead, store):
    path = store / "config" / "topics.json"
    document = json.loads(path.read_text())
    table = document["topicConfigTable"]
    table["%DLQ%no group"] = {**table["%DLQ%g"], "topicName": "%DLQ%no group"}
    path.write_text(json.dumps(document))
    rows = run("dlq", "list", "-o", "json").json()
    assert [(row["group"], row["depth"]) for row in rows] == [("g", 5), ("no group", 0)]


@pytest.mark.slow
@pytest.mark.feature(99)
def test_an_export_is_sent_again_without_loss(dead):
    lines = run("dlq", "export", "g", "-o", "jsonl").lines
    assert [json.loads(line)["topic"] for line in lines] == ["%DLQ%g"] * 5
    run("topic", "create", "copy", "--queues", 1)
    again = "\n".join(lines).encode()
    assert run("produce", "copy", "--input", "jsonl", "-q", stdin=again).code == 0
    copies = run("consume", "copy", "-e", "-o", "json", "-q").json()
    assert [(c["body"], c.get("body_base64")) for c in copies] == [
        (m["body"], m.get("body_base64")) for m in map(json.loads, lines)
    ]
    assert [c["keys"] for c in copies] == [json.loads(line)["keys"] for line in lines]
