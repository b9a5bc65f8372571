"""Stores of real brokers: dead letters and retries as RocketMQ's own classes list them."""

from collections import defaultdict

import pytest

from tests.support import golden, golden_samples
from tests.support.cli import run

NAMES = golden.names()


def dead(name):
    """The dead letters of a store by group, as RocketMQ reads them."""
    found = defaultdict(list)
    for message in golden.manifest(name).get("messages", ()):
        if message.get("topic", "").startswith("%DLQ%"):
            found[message["topic"].removeprefix("%DLQ%")].append(message)
    return found


@pytest.mark.feature(83)
@golden_samples.SOME
def test_depths_are_those_that_rocketmq_gives(name):
    rows = run("dlq", "list", "-S", golden.store(name), "-o", "json").json()
    assert [row["group"] for row in rows] == sorted(row["group"] for row in rows)
    expected = {
        group: (
            len(messages),
            len(messages),
            min(message["storeTimestamp"] for message in messages),
            max(message["storeTimestamp"] for message in messages),
            sum(message["storeSize"] for message in messages),
        )
        for group, messages in dead(name).items()
    }
    fields = ("depth", "unhandled", "oldest_timestamp", "newest_timestamp", "bytes")
    assert {
        row["group"]: tuple(row[field] for field in fields) for row in rows if row["depth"]
    } == expected


@pytest.mark.feature(96)
@pytest.mark.parametrize("name", [name for name in NAMES if dead(name)])
def test_dead_letters_are_those_that_rocketmq_reads(name):
    store = golden.store(name)
    for group, messages in dead(name).items():
        rows = run("dlq", "browse", group, "-S", store, "-o", "json").json()
        assert [
            (
                row["queue_offset"],
                row["msg_id"],
                " ".join(row["keys"]),
                row["origin_topic"],
                row["reconsume_times"],
                row["dead_timestamp"],
                row["reason"],
                row["handled"],
                row["store_size"],
                row["tags"],
                row["origin_msg_id"],
                row["redrives"],
            )
            for row in rows
        ] == [
            (
                message["queueOffset"],
                message["properties"]["UNIQ_KEY"],
                message["properties"].get("KEYS", ""),
                message["properties"]["RETRY_TOPIC"],
                message["reconsumeTimes"],
                message["storeTimestamp"],
                None,
                False,
                message["storeSize"],
                message["properties"].get("TAGS"),
                message["properties"]["ORIGIN_MESSAGE_ID"],
                0,
            )
            for message in messages
        ]


@pytest.mark.feature(84)
def test_filters_choose_among_dead_letters():
    store = golden.store("retry-dlq-4.9")
    messages = dead("retry-dlq-4.9")["g-flaky"]
    middle = messages[3]["storeTimestamp"]
    later = run("dlq", "browse", "g-flaky", "-S", store, "--from", middle, "-o", "json").json()
    assert [row["queue_offset"] for row in later] == [
        m["queueOffset"] for m in messages if m["storeTimestamp"] >= middle
    ]
    keyed = run("dlq", "browse", "g-flaky", "-S", store, "-k", "AaBB", "-o", "json").json()
    assert [row["queue_offset"] for row in keyed] == [4]


@pytest.mark.slow
def test_a_group_without_dead_letters_has_none_and_an_unknown_one_is_not_found():
    store = golden.store("retry-dlq-4.9")
    for command in (("browse",), ("groups",), ("export",), ("redrive", "--all"), ("ack", "--all")):
        verb, *options = command
        done = run("dlq", verb, "g-fine", *options, "-S", store, "-o", "json", "--dry-run")
        assert (done.code, done.json()) == (0, [])
        missing = run("dlq", verb, "g-none", *options, "-S", store)
        assert (missing.code, missing.out) == (3, "")
        assert "group g-none does not exist" in missing.err
    assert run("dlq", "show", "g-fine", "0", "-S", store).code == 3
