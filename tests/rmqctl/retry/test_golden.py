"""Stores of real brokers: retries as RocketMQ's own classes list them."""

from collections import defaultdict

import pytest

from tests.support import golden
from tests.support.cli import run

NAMES = golden.names()


def by_topic(name):
    """The messages of a store as RocketMQ reads them, by topic."""
    found = defaultdict(list)
    for message in golden.manifest(name).get("messages", ()):
        if "properties" in message:
            found[message["topic"]].append(message)
    return found


def groups(name):
    """Groups with retries, waiting or delivered."""
    topics = by_topic(name)
    real = {m["properties"].get("REAL_TOPIC", "") for m in topics["SCHEDULE_TOPIC_XXXX"]}
    return sorted(t.removeprefix("%RETRY%") for t in {*topics, *real} if t.startswith("%RETRY%"))


def delivered_up_to(name):
    saved = golden.manifest(name)["configs"].get("delayOffset.json", {}).get("offsetTable", {})
    return {int(level): offset for level, offset in saved.items()}


def expected(name, group):
    """Places of the records that wait, and of those that the group has not read past."""
    topics, saved = by_topic(name), delivered_up_to(name)
    retry = f"%RETRY%{group}"
    delivered = {(m["properties"]["UNIQ_KEY"], m["reconsumeTimes"]) for m in topics.get(retry, ())}
    held = [
        message
        for message in topics["SCHEDULE_TOPIC_XXXX"]
        if message["properties"]["REAL_TOPIC"] == retry
        and message["queueOffset"] >= saved.get(message["queueId"] + 1, 0)
        and (message["properties"]["UNIQ_KEY"], message["reconsumeTimes"]) not in delivered
    ]
    offsets = golden.manifest(name)["consumerOffset"]["offsetTable"].get(f"{retry}@{group}", {})
    ready = [
        message
        for message in topics.get(retry, ())
        if message["queueOffset"] >= offsets.get(str(message["queueId"]), 0)
    ]
    return held, ready


def was_due(name, message):
    """When a delivered message was due, by its record in the delay topic."""
    dues = [
        record["tagsCode"]
        for record in by_topic(name)["SCHEDULE_TOPIC_XXXX"]
        if record["properties"]["UNIQ_KEY"] == message["properties"]["UNIQ_KEY"]
        and record["reconsumeTimes"] == message["reconsumeTimes"]
        and record["properties"]["REAL_TOPIC"] == message["topic"]
    ]
    return min(dues[-1], message["storeTimestamp"]) if dues else None


@pytest.mark.feature(85)
@pytest.mark.parametrize("name", [name for name in NAMES if groups(name)])
def test_retries_are_those_that_rocketmq_reads(name):
    store = golden.store(name)
    for group in groups(name):
        held, ready = expected(name, group)
        rows = run("retry", "browse", group, "-S", store, "-o", "json").json()
        assert [
            (
                row["msg_id"],
                " ".join(row["keys"]),
                row["origin_topic"],
                row["reconsume_times"],
                row["due_timestamp"],
                row["reason"],
                row["store_size"],
                row["tags"],
                row["delay_level"],
            )
            for row in rows
        ] == [
            (
                message["properties"]["UNIQ_KEY"],
                message["properties"].get("KEYS", ""),
                message["properties"]["RETRY_TOPIC"],
                message["reconsumeTimes"],
                due,
                None,
                message["storeSize"],
                message["properties"].get("TAGS"),
                int(message["properties"]["DELAY"]),
            )
            for message, due in [
                *((message, message["tagsCode"]) for message in held),
                *((message, was_due(name, message)) for message in ready),
            ]
        ]


@pytest.mark.parametrize("name", [name for name in NAMES if groups(name)])
def test_the_origin_is_the_record_that_was_read_first(name):
    store = golden.store(name)
    topics = by_topic(name)
    for group in groups(name):
        rows = run("retry", "browse", group, "--all", "-S", store, "-o", "json").json()
        for row in rows:
            (first,) = [
                message
                for message in topics[row["origin_topic"]]
                if message["properties"]["UNIQ_KEY"] == row["msg_id"]
            ]
            assert (row["origin_queue_id"], row["origin_offset"]) == (
                first["queueId"],
                first["queueOffset"],
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if by_topic(name)["%DLQ%g-flaky"]])
def test_a_life_has_every_attempt_that_the_log_has(name):
    store = golden.store(name)
    topics = by_topic(name)
    for dead_letter in topics["%DLQ%g-flaky"]:
        unique = dead_letter["properties"]["UNIQ_KEY"]
        rows = run("retry", "show", "g-flaky", unique, "-S", store, "-o", "json").json()
        records = sorted(
            (
                message["commitLogOffset"],
                message["topic"],
                message["queueId"],
                message["queueOffset"],
                message["reconsumeTimes"],
                message["storeTimestamp"],
            )
            for topic in ("SCHEDULE_TOPIC_XXXX", "%RETRY%g-flaky", "%DLQ%g-flaky", "GoldenRetry")
            for message in topics[topic]
            if message["properties"]["UNIQ_KEY"] == unique
            and message["properties"].get("REAL_TOPIC", "%RETRY%g-flaky") == "%RETRY%g-flaky"
        )
        assert [
            (
                row["topic"],
                row["queue_id"],
                row["queue_offset"],
                row["reconsume_times"],
                row["at_timestamp"],
            )
            for row in rows
        ] == [record[1:] for record in records]
        assert [row["what"] for row in rows] == ["STORED", *["FAILED", "DELIVERED"] * 3, "DEAD"]


@pytest.mark.feature(86)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if "recovered" not in golden.manifest(name)]
)
def test_the_agenda_counts_what_has_not_been_delivered(name):
    saved = delivered_up_to(name)
    held = defaultdict(list)
    topics = by_topic(name)
    for message in topics["SCHEDULE_TOPIC_XXXX"]:
        real = message["properties"]["REAL_TOPIC"]
        key = (message["properties"]["UNIQ_KEY"], message["reconsumeTimes"])
        there = {(m["properties"].get("UNIQ_KEY"), m["reconsumeTimes"]) for m in topics[real]}
        level = message["queueId"] + 1
        if message["queueOffset"] >= saved.get(level, 0) and key not in there:
            held[level, real].append(message["tagsCode"])
    rows = run("retry", "agenda", "-S", golden.store(name), "-o", "json").json()
    assert {
        (row["level"], row["topic"]): (
            row["messages"],
            row["next_timestamp"],
            row["last_timestamp"],
        )
        for row in rows
    } == {key: (len(dues), min(dues), max(dues)) for key, dues in held.items()}
