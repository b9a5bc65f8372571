"""Which queues ``topics``, ``topicsPattern`` and ``queues`` select; stores that are unreadable."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from analytics.datasource.query.errors import OptionError
from analytics.datasource.query.options import read_options
from storage.errors import RocketMQError
from storage.format.message import SYSTEM_TOPICS
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import Stream, read_table

CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)
TOPICS = ("pay", "pay-2", "ship", "%RETRY%pay", "%DLQ%g")


def store(root: Path, topics: tuple[str, ...] = TOPICS) -> Path:
    root.mkdir()
    made = HandMade(CONFIG)
    for number in range(30):
        made.put(topics[number % len(topics)], number % 2, b"%s %d" % (root.name.encode(), number))
    return made.write(root)


def queues(*roots: Path, **options: Any) -> set[tuple[str, str, int]]:
    rows = read_table("consumequeue", *roots, **options)
    return {(row["broker"], row["topic"], row["queue_id"]) for row in rows}


def topics(*roots: Path, **options: Any) -> set[str]:
    return {topic for _, topic, _ in queues(*roots, **options)}


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("pay.*", {"pay", "pay-2"}),
        ("pay", {"pay"}),
        (".*", {"pay", "pay-2", "ship"}),
        ("%RETRY%.*", {"%RETRY%pay"}),
        ("%DLQ%g", {"%DLQ%g"}),
    ],
)
def test_a_pattern_matches_whole_names(tmp_path: Path, pattern: str, wanted: set[str]) -> None:
    assert topics(store(tmp_path / "a"), topicsPattern=pattern) == wanted


OWN = (*sorted(SYSTEM_TOPICS), "rmq_sys_wheel_timer", "%RETRY%g", "%DLQ%g")


def test_topics_of_rocketmqs_own_are_read_only_if_they_are_named(tmp_path: Path) -> None:
    root = store(tmp_path / "a", ("pay", *OWN))
    assert topics(root) == {"pay"}
    assert topics(root, topicsPattern=".*") == {"pay"}
    for topic in OWN:
        assert topics(root, topics=topic) == {topic}
        assert topics(root, topicsPattern=f"{topic}|pay") == {topic, "pay"}
    (rows,) = Stream(root).drain()
    assert {row["topic"] for row in rows} == {"pay"}
    with pytest.raises(OptionError, match=r"\(there are pay\)"):
        topics(root, topics="zzz")


@pytest.mark.timeout(60)
def test_a_pattern_takes_no_more_time_than_the_names_are_long(tmp_path: Path) -> None:
    long = "a" * 60
    root = store(tmp_path / "a", ("aab", long))
    assert topics(root, topicsPattern="(a+)+b") == {"aab"}
    stream = Stream(root, topicsPattern="(a+)+b")
    assert {row["topic"] for batch in stream.drain() for row in batch} == {"aab"}


def test_a_choice_with_a_pattern_goes_to_tasks(tmp_path: Path) -> None:
    root = store(tmp_path / "a")
    options = read_options({"path": str(root), "topicsPattern": "pay.*"})
    again = pickle.loads(pickle.dumps(options.topics))
    assert again == options.topics
    assert again.wants("a", "pay-2", 0)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"pay": [0]}, {("a", "pay", 0), ("b", "pay", 0)}),
        ({"a": {"pay": [0, 1]}}, {("a", "pay", 0), ("a", "pay", 1)}),
        (
            {"a": {"%DLQ%g": [0]}, "b": {"ship": [1]}, "pay": [1]},
            {("a", "%DLQ%g", 0), ("b", "ship", 1), ("a", "pay", 1), ("b", "pay", 1)},
        ),
    ],
)
def test_queues_are_named_by_topic_or_by_broker(
    tmp_path: Path, value: object, wanted: set[tuple[str, str, int]]
) -> None:
    roots = [store(tmp_path / name) for name in "ab"]
    assert queues(*roots, queues=json.dumps(value)) == wanted


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("topicsPattern", "zap.*", "'zap..' matches no topic .there are pay, pay-2, ship"),
        ("topicsPattern", "(", r"topicsPattern: '\(' is not a regular expression: missing \)"),
        ("topicsPattern", r"(a)\1", "no back references"),
        ("queues", "{", "is no JSON: Expecting"),
        ("queues", '{"pay": [0], "pay": [1]}', "is no JSON: it has the key 'pay' twice"),
        ("queues", "[]", "has not the form"),
        ("queues", '{"pay": 1}', "has not the form"),
        ("queues", '{"pay": ["1"]}', "has not the form"),
        ("queues", '{"pay": [true]}', "has not the form"),
        ("queues", '{"pay": [7]}', "no store has queue 7 of 'pay' .there are 0, 1"),
        ("queues", '{"pai": [0]}', "queues: no store has a topic 'pai' .did you mean pay"),
        ("queues", '{"b": {"pay": [0]}}', "queues: no store has a broker 'b' .there are a"),
    ],
)
def test_what_matches_nothing_or_is_malformed_is_refused(
    tmp_path: Path, option: str, value: str, said: str
) -> None:
    root = store(tmp_path / "a")
    with pytest.raises(OptionError, match=said):
        queues(root, **{option: value})


def test_the_three_exclude_each_other(tmp_path: Path) -> None:
    given = {"path": str(store(tmp_path / "a")), "topics": "pay", "topicsPattern": "p"}
    with pytest.raises(OptionError, match="topics and topicsPattern: give one of them"):
        read_options(given)


def test_a_stream_takes_on_topics_that_match_later(tmp_path: Path) -> None:
    root = store(tmp_path / "a", ("other",))
    stream = Stream(root, topicsPattern="pay.*")  # nothing matches yet
    assert stream.drain() == [[]]
    made = HandMade(CONFIG)
    for number in range(30):
        made.put("other", number % 2, b"a %d" % number)
    for number in range(9):
        made.put("pay-7", number % 3)
    made.write(root)
    assert {row["topic"] for row in stream.trigger()} == {"pay-7"}


@pytest.mark.parametrize("table", ["messages", "lag"])
def test_a_store_that_cannot_be_opened_fails_or_is_left_out(
    tmp_path: Path, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = store(tmp_path / "good"), tmp_path / "bad"
    bad.mkdir()
    with pytest.raises(RocketMQError):
        read_table(table, good, bad)
    assert read_table(table, good, bad, onUnreadableStore="skip") == read_table(table, good)
    assert "bad: left out, it cannot be read: " in caplog.text


def test_a_stream_goes_on_when_a_store_can_be_opened_again(tmp_path: Path) -> None:
    a, b = (store(tmp_path / name) for name in "ab")
    stream = Stream(a, b, onUnreadableStore="skip")
    stream.drain()
    shutil.move(b, tmp_path / "away")
    (tmp_path / "b").mkdir()
    assert stream.drain() == []
    (tmp_path / "b").rmdir()
    shutil.move(tmp_path / "away", b)
    assert stream.drain() == []


# -- a stream that is started again ------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"topics": "pay"}, {"topics": "pai"}, "topics: no store has a topic 'pai' .did you mean"),
        ({"topics": "pay"}, {"queues": '{"pay": [7]}'}, "queues: no store has queue 7 of 'pay'"),
    ],
)
@pytest.mark.parametrize("repeats", [False, True], ids=["goes on", "repeats a batch"])
def test_a_restart_with_a_name_that_is_in_no_store_fails(
    tmp_path: Path,
    before: dict[str, str],
    after: dict[str, str],
    said: str,
    repeats: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    root = store(tmp_path / "a")
    first = Stream(root, **before)
    begin = first.at
    first.trigger()

    def begun(**more: str) -> Stream:
        stream = Stream(root, at=begin if repeats else first.at, **after, **more)
        if repeats:
            stream.reader.partitions(json.loads(begin), json.loads(first.at))
        else:
            stream.trigger()
        return stream

    with pytest.raises(OptionError, match=said):
        begun()
    assert caplog.text == ""
    stream = begun(failOnDataLoss="false")
    stream.trigger()
    assert len(re.findall(said, caplog.text)) == 1


def test_a_restart_may_name_what_is_there_and_forget_the_group_that_it_began_at(
    tmp_path: Path,
) -> None:
    root = store(tmp_path / "a")
    (root / "config").mkdir()
    progress = root / "config" / "consumerOffset.json"
    progress.write_text(json.dumps({"offsetTable": {"pay@g": {"0": 1}}}))
    stream = Stream(root, topics="pay", startingOffset="group:g")
    stream.drain()
    progress.write_text(json.dumps({"offsetTable": {}}))
    assert Stream(root, at=stream.at, topics="pay,ship", startingOffset="group:g").drain() == []


def test_a_restart_without_a_store_that_is_skipped_does_not_miss_its_topics(tmp_path: Path) -> None:
    roots = store(tmp_path / "a"), store(tmp_path / "b", ("only",))
    options = {"topics": "only,pay", "onUnreadableStore": "skip"}
    stream = Stream(*roots, **options)
    stream.drain()
    shutil.move(roots[1], tmp_path / "away")
    assert Stream(*roots, at=stream.at, **options).drain() == []
    shutil.move(tmp_path / "away", roots[1])
    with pytest.raises(OptionError, match="no store has a topic 'onli'"):
        Stream(*roots, at=stream.at, **{**options, "topics": "onli"}).trigger()
