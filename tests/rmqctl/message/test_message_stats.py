"""``message stats`` counts what is there."""

import json
from collections import Counter as Count
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from rmqctl.admin.messages.counting import Counter, _bucket, _largest_in
from rmqctl.admin.messages.stats_rows import TimeValueStatsRow
from storage.format.message import MessageExt
from tests.support import golden
from tests.support.cli import run

INNER = {"SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"}
INNER |= {"TRANS_CHECK_MAX_TIME_TOPIC"}


def stats(root: Path, *args: object) -> Any:
    result = run("message", "stats", "-S", root, "-o", "json", *args)
    assert result.code == 0, result.err
    return result.json()


def golden_rows(name: str) -> list[dict[str, Any]]:
    rows = {row["commitLogOffset"]: row for row in golden.manifest(name)["messages"]}
    return [row for row in rows.values() if row["topic"] not in INNER]


@pytest.mark.slow
@pytest.mark.feature(36)
@pytest.mark.parametrize("name", ["basic-4.9", "basic-5.3", "retry-dlq-4.9", "cqext-4.9"])
def test_golden_messages_are_counted_by_everything(name):
    root, rows = golden.store(name), golden_rows(name)
    total = stats(root)
    assert total["messages"] == len(rows)
    assert total["bytes"] == sum(row["storeSize"] for row in rows)
    assert total["body_bytes"] == sum(row["storedBodyLength"] for row in rows)
    assert total["first_timestamp"] == min(row["storeTimestamp"] for row in rows)
    assert total["last_timestamp"] == max(row["storeTimestamp"] for row in rows)
    assert total["compressed"] == sum(row["sysFlag"] & 1 for row in rows)
    assert total["retried"] == sum(row["reconsumeTimes"] > 0 for row in rows)
    properties = [row["properties"] or {} for row in rows]
    expected = {
        "topic": Count(row["topic"] for row in rows),
        "queue": Count(f"{row['topic']}:{row['queueId']}" for row in rows),
        "tag": Count(each.get("TAGS") for each in properties),
        "attempts": Count(str(row["reconsumeTimes"]) for row in rows),
        "key": Count(key for each in properties for key in each.get("KEYS", "").split() or [None]),
    }
    for by, counts in expected.items():
        shown = stats(root, "--by", by)
        assert {row["value"]: row["messages"] for row in shown} == counts, by
        assert [row["messages"] for row in shown] == sorted(counts.values(), reverse=True)
        if by != "key":
            assert sum(row["bytes"] for row in shown) == total["bytes"]
            assert sum(row["share"] for row in shown) == pytest.approx(1, abs=0.005)


@pytest.mark.feature(36)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York"])
@pytest.mark.parametrize("by", ["minute", "hour", "day"])
def test_spans_begin_where_the_zones_clock_says(zone, by):
    rows = golden_rows("retry-dlq-4.9")
    expected: Count[int] = Count()
    for row in rows:
        local = datetime.fromtimestamp(row["storeTimestamp"] / 1000, ZoneInfo(zone))
        start = local.replace(second=0, microsecond=0)
        if by != "minute":
            start = start.replace(minute=0)
        if by == "day":
            start = start.replace(hour=0)
        expected[int(start.astimezone(UTC).timestamp() * 1000)] += 1
    shown = stats(golden.store("retry-dlq-4.9"), "--by", by, "--tz", zone)
    assert {row["start_timestamp"]: row["messages"] for row in shown} == expected
    assert [row["start_timestamp"] for row in shown] == sorted(expected)


@pytest.mark.slow
def test_filters_choose_what_is_counted(store):
    run("produce", "t", "--tag", "a", stdin=b"1\n2\n")
    run("produce", "t", "--tag", "b", stdin=b"3\n")
    run("produce", "u", "--tag", "a", stdin=b"4\n")
    assert stats(store)["messages"] == 4
    assert stats(store, "-t", "t")["messages"] == 3
    assert stats(store, "-t", "t", "-t", "u", "--tag", "a")["messages"] == 3
    assert stats(store, "--body", "3")["messages"] == 1
    rows = stats(store, "--by", "tag", "-t", "t", "--limit", 1)
    assert [(row["value"], row["messages"], row["share"]) for row in rows] == [("a", 2, 0.6667)]


def test_an_empty_store_has_unknown_times(store):
    assert stats(store) == {
        **dict.fromkeys(("messages", "bytes", "body_bytes", "compressed", "with_keys"), 0),
        **dict.fromkeys(("retried", "damaged"), 0),
        **dict.fromkeys(("first_timestamp", "last_timestamp", "per_hour"), None),
        **{f"body_bytes_{name}": None for name in ("min", "p50", "p99", "max")},
        **{name: [] for name in ("topics", "tags", "keys", "hosts")},
    }
    assert stats(store, "--by", "tag") == []


def test_a_key_that_a_message_has_twice_counts_once(store):
    run("produce", "t", "--key", "a a", stdin=b"1\n")
    run("produce", "t", "--key", "a", stdin=b"2\n")
    (row,) = stats(store, "--by", "key")
    assert (row["value"], row["messages"], row["share"]) == ("a", 2, 1.0)
    assert stats(store)["keys"] == [{"key": "a", "messages": 2, "bytes": row["bytes"]}]
    assert row["bytes"] == stats(store)["bytes"]


@pytest.mark.parametrize("options", [("--by", "{by}", "-o", "help"), ("-o", "help", "--by={by}")])
@pytest.mark.parametrize(
    ("by", "first", "last"),
    [("tag", "value", "last_timestamp"), ("hour", "start_timestamp", "per_second")],
)
def test_the_fields_that_are_told_are_those_of_the_rows(options, by, first, last):
    result = run("message", "stats", *(option.format(by=by) for option in options))
    assert (result.code, result.err) == (0, "")
    assert [line.split()[0] for line in (result.lines[1], result.lines[-1])] == [first, last]


def test_what_is_unknown_is_refused(store):
    result = run("message", "stats", "--by", "colour")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "--by: 'colour' is not one of topic, queue, tag" in result.err


def test_many_different_keys_are_counted_together_in_the_end(monkeypatch):
    monkeypatch.setattr("rmqctl.admin.messages.counting._MOST_VALUES", 3)
    counter, other = Counter(["key"]), Counter(["key"])
    for number in range(5):
        counter.add(MessageExt("t", b"", f"KEYS\x01k{number}".encode()))
        other.add(MessageExt("t", b"", f"KEYS\x01k{number}".encode()))
    counter.merge(other.packed())
    assert {row.value: row.messages for row in counter.rows("key")} == {
        "k0": 2,
        "k1": 2,
        "k2": 2,
        "(others)": 4,
    }


@pytest.mark.parametrize("merged", [False, True])
def test_many_different_times_are_counted_together_in_the_end(monkeypatch, merged):
    monkeypatch.setattr("rmqctl.admin.messages.counting._MOST_VALUES", 3)
    counter = Counter(["minute"], UTC)
    for number in (4, 3, 2, 1, 0):
        message = MessageExt("t", b"")
        message.store_timestamp = number * 60_000
        counter.add(message)
    if merged:
        (whole := counter.fresh()).merge(counter.packed())
        counter = whole
    rows = [(row.start_timestamp, row.messages) for row in counter.time_rows("minute")]
    assert rows == [(120_000, 1), (180_000, 1), (240_000, 1), (None, 2)]
    assert [row.per_second for row in counter.time_rows("minute")] == [0.017] * 3 + [None]


@pytest.mark.parametrize("most", [1, 2, 10_000])
def test_it_does_not_matter_how_many_combinations_are_kept_apart(monkeypatch, most):
    monkeypatch.setattr("rmqctl.admin.messages.counting._MOST_GROUPS", most)
    monkeypatch.setattr("rmqctl.admin.messages.counting._MOST_VALUES", 3)
    counter = Counter(["hour", "tag", "topic"], UTC)
    for number in range(12):
        message = MessageExt(f"t{number % 2}", b"", f"TAGS\x01g{number % 5}".encode())
        message.store_timestamp, message.store_size = number * 600_000, number
        counter.add(message)
    seen = {row.value: (row.messages, row.bytes) for row in counter.rows("tag")}
    assert seen == {"g0": (3, 15), "g1": (3, 18), "g2": (2, 9), "(others)": (4, 24)}
    assert [row.messages for row in counter.time_rows("hour")] == [6, 6]
    assert {row.value: row.messages for row in counter.rows("topic")} == {"t0": 6, "t1": 6}
    total = counter.summary(0)
    assert (total.messages, total.bytes) == (12, 66)
    assert (total.first_timestamp, total.last_timestamp) == (0, 6_600_000)


@given(st.lists(st.integers(0, 5_000_000), min_size=1, max_size=60), st.integers(0, 60))
def test_parts_add_up_and_sizes_are_right_to_an_eighth(sizes, cut):
    whole, first, second = (Counter(["topic"]) for _ in range(3))
    for number, size in enumerate(sizes):
        message = MessageExt("t", b"", store_size=size)
        message.stored_body = bytes(0)
        message.store_timestamp = number
        whole.add(message)
        (first if number < cut else second).add(message)
    first.merge(second.packed())
    assert first.summary(0) == whole.summary(0)
    for size in sizes:
        bucket = _bucket(size)
        assert size <= _largest_in(bucket) <= max(size * 9 // 8 + 1, size)
        assert _bucket(_largest_in(bucket)) == bucket
        assert _bucket(_largest_in(bucket) + 1) == bucket + 1


@pytest.mark.parametrize("most", [1, 10_000])
@pytest.mark.parametrize("merged", [False, True])
def test_times_before_1970_are_not_later_than_they_are(monkeypatch, most, merged):
    monkeypatch.setattr("rmqctl.admin.messages.counting._MOST_GROUPS", most)
    counter = Counter(["topic", "key"])
    for time, topic in ((-7_200_000, "t"), (-3_600_000, "t"), (-3_600_000, "u")):
        message = MessageExt(topic, b"", b"KEYS\x01k")
        message.store_timestamp = time
        counter.add(message)
    if merged:
        (whole := counter.fresh()).merge(counter.packed())
        counter = whole
    times = {row.value: (row.first_timestamp, row.last_timestamp) for row in counter.rows("topic")}
    assert times == {"t": (-7_200_000, -3_600_000), "u": (-3_600_000, -3_600_000)}
    (key,) = counter.rows("key")
    assert (key.first_timestamp, key.last_timestamp) == (-7_200_000, -3_600_000)
    total = counter.summary(0)
    assert (total.last_timestamp, total.per_hour) == (-3_600_000, 3.0)


@pytest.mark.parametrize("day", ["2025-03-30", "2025-03-31", "2025-10-26"])
def test_a_rate_by_day_is_that_of_the_hours_that_the_day_has(day):
    zone = ZoneInfo("Europe/Berlin")
    counter = Counter(["day"], zone)
    hours = {"2025-03-30": 23, "2025-03-31": 24, "2025-10-26": 25}[day]
    for number in range(hours * 360):
        message = MessageExt("t", b"")
        start = int(datetime.fromisoformat(day).replace(tzinfo=zone).timestamp() * 1000)
        message.store_timestamp = start + number * 10_000
        counter.add(message)
    (row,) = counter.time_rows("day")
    assert (row.messages, row.per_second) == (hours * 360, 0.1)


def test_a_day_outside_of_all_calendars_has_24_hours():
    counter = Counter(["day"], UTC)
    for _ in range(864):
        message = MessageExt("t", b"")
        message.store_timestamp = 1 << 62
        counter.add(message)
    assert [row.per_second for row in counter.time_rows("day")] == [0.01]


def test_it_is_one_object_or_rows(store):
    run("produce", "t", stdin=b"1\n")
    assert json.loads(run("message", "stats", "-o", "jsonl").out)["messages"] == 1
    assert "messages" in run("message", "stats", "-o", "table").out


BODIES = [
    b'{"country": "DE", "customer": {"id": 7}}',
    b'{"country": "FR", "customer": {"id": "7"}}',
    b'{"country": "DE", "customer": null}',
    b'{"country": null}',
    b"no JSON",
]


@pytest.fixture
def countries(store):
    run("produce", "orders", "-q", "-H", "source=web", stdin=b"\n".join(BODIES[:3]))
    run("produce", "orders", "-q", stdin=b"\n".join(BODIES[3:]))
    return store


@pytest.mark.parametrize(
    ("by", "counts"),
    [
        ("json.country", {"DE": 2, "FR": 1, None: 2}),
        ("json.customer.id", {"7": 2, None: 3}),
        ("json.customer", {'{"id": 7}': 1, '{"id": "7"}': 1, None: 3}),
        ("property.source", {"web": 3, None: 2}),
    ],
)
def test_messages_are_counted_by_a_field_of_their_bodies_and_by_a_property(countries, by, counts):
    assert {row["value"]: row["messages"] for row in stats(countries, "--by", by)} == counts
    by_day = stats(countries, "--by", f"day,{by}")
    assert {row["value"]: row["messages"] for row in by_day} == counts
    assert stats(countries, "--by", f"{by},day") == by_day
    assert by_day[0].keys() == set(TimeValueStatsRow._fields)
    assert sum(row["share"] for row in by_day) == pytest.approx(1)


def test_pairs_are_in_the_order_of_time_then_of_number():
    counter = Counter(("hour,tag",), UTC)
    for hour, tag in ((1, "a"), (0, "b"), (1, "c"), (1, "c"), (0, None)):
        properties = f"TAGS\x01{tag}".encode() if tag else b""
        counter.add(MessageExt("t", b"x", properties, store_timestamp=hour * 3_600_000))
    merged = counter.fresh()
    merged.merge(counter.packed())
    for one in (counter, merged):
        rows = [(r.start_timestamp, r.value, r.messages) for r in one.time_value_rows("hour,tag")]
        assert rows == [(0, None, 1), (0, "b", 1), (3_600_000, "c", 2), (3_600_000, "a", 1)]


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("country", "the field of a JSON body is json.country"),
        ("keys", "did you mean 'key'?"),
        ("tag,host", "has no time span"),
        ("hour,key", "key cannot be combined with a time span"),
        ("hour,", "is not one of"),
        ("json.a[*]", "may have several values"),
        ("json.a > 3", "expected a path alone"),
        ("json.", "expected a path"),
        ("property.", "is not one of"),
        ("hour,json.", "expected a path"),
    ],
)
def test_what_messages_cannot_be_counted_by(countries, by, sentence):
    result = run("message", "stats", "--by", by)
    assert result.code == 2
    assert sentence in result.err
    assert "see 'rmqctl message stats --help'" in result.err
    assert run("message", "stats", "--by", "hour,tag", "-o", "help").out.count("start_timestamp")
