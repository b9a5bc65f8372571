"""resetOffsetByTime: RocketMQ's own rule on the stores that real brokers wrote."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.offsets.plan import targets_of
from rmqctl.admin.offsets.queues import TopicChoice
from rmqctl.admin.offsets.snapshot import OffsetSnapshot
from rmqctl.admin.offsets.time_reset import ResetByTime
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import ProgressTable
from storage.read.by_time import Boundary
from storage.readonly import StoreView
from tests.support import golden, golden_samples
from tests.support.cli import run
from tests.support.golden_differences import allowed
from tests.support.java_lock import java_lock

START = 1_767_225_600_000
MINUTE = 60_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BY_TIME = [name for name in golden.names() if golden.manifest(name).get("offsetByTime")]


def rule_of(name):
    """A 4.9 broker looks for the nearest message, a 5.3 one for the first not before the time."""
    return Boundary.NEAREST49 if name.endswith("4.9") else Boundary.LOWER


def asked(name):
    """(topic, timestamp) to the offsets that RocketMQ gives, by queue; no unknown topics."""
    with StoreView.open(golden.store(name)) as view:
        known = {*view.topics(), *(topic for topic, _ in view.queues())}
    found: Any = defaultdict(dict)
    for row in golden.manifest(name)["offsetByTime"]:
        if row["topic"] in known and not allowed(name, "time", row):
            found[row["topic"], row["timestamp"]][row["queueId"]] = row["offset"]
    return sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))


@pytest.mark.slow
@pytest.mark.conformance("G12")
@pytest.mark.parametrize("name", golden_samples.some(BY_TIME))
def test_every_queue_goes_where_rocketmq_finds_the_time(name):
    with EmbeddedBroker.open(golden.store(name), read_only=True) as broker:
        for (topic, timestamp), expected in asked(name):
            choice = TopicChoice(topic, tuple(sorted(expected)))
            wanted = ResetByTime("operators", choice, timestamp, rule_of(name), force=True)
            snapshot = OffsetSnapshot(broker.view, broker, ProgressTable(), timestamp)
            found = targets_of(wanted.steps(snapshot))
            assert {place.queue_id: offset for place, offset in found.items()} == expected


def is_told_by_people(timestamp):
    """Whether the command line takes it: the others are refused as slips of the hand."""
    return 631_152_000_000 <= timestamp < 7_289_654_400_000


def spread(questions, count):
    """Some of many, evenly, with the first and the last."""
    step = max(1, len(questions) // count)
    return [*questions[::step], *questions[-1:]]


@pytest.mark.slow
@pytest.mark.feature(61)
@pytest.mark.conformance("G12")
@pytest.mark.parametrize("name", golden_samples.some(BY_TIME, {*golden_samples.FEW, "time-4.9"}))
def test_it_writes_the_offsets_that_rocketmq_finds(name, tmp_path):
    root = golden.extract(name, tmp_path)
    told = [question for question in asked(name) if is_told_by_people(question[0][1])]
    for (topic, timestamp), expected in spread(told, 6):
        moment = (EPOCH + timedelta(milliseconds=timestamp)).isoformat(timespec="milliseconds")
        queues = ",".join(map(str, sorted(expected)))
        given = [
            "-S",
            root,
            "-g",
            "operators",
            "--new-group",
            "-t",
            topic,
            "-s",
            moment,
            "--queue",
            queues,
        ]
        result = run(
            "resetOffsetByTime", *given, "--boundary", rule_of(name), "--yes", "-qo", "json"
        )
        assert result.code == golden.code_of_reading(name), result.err
        assert {row["queue_id"]: row["new_offset"] for row in result.json()} == expected
        written = load_consumer_offsets(root)[f"{topic}@operators"]
        assert {queue_id: written[queue_id] for queue_id in expected} == expected


def by_time(*options):
    return run("resetOffsetByTime", "-g", "g", "-t", "orders", *options)


AT_3_AND_A_BIT = str(START + 3 * MINUTE + 20_000)


def test_the_plan_says_where_each_queue_lands_and_what_the_lower_bound_is(orders, offsets):
    result = by_time("-s", AT_3_AND_A_BIT, "--dry-run", "-o", "json")
    assert result.code == 0, result.err
    assert result.json() == [
        {
            "broker": "broker-a",
            "queue_id": queue_id,
            "old_offset": old,
            "new_offset": 3,
            "lands_on_timestamp": START + 3 * MINUTE,
            "note": "lower bound is 4",
        }
        for queue_id, old in ((0, 5), (1, None))
    ]
    assert "dry run: nothing was changed" in result.err
    assert offsets() == {0: 5, 1: None}


@pytest.mark.conformance("G12")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-s", AT_3_AND_A_BIT], {0: 3, 1: 3}),
        (["-s", AT_3_AND_A_BIT, "--boundary", "lower"], {0: 4, 1: 4}),
        (["-s", AT_3_AND_A_BIT, "--boundary", "upper"], {0: 3, 1: 3}),
        (["-s", str(START + 8 * MINUTE)], {0: 8, 1: 4}),
        (["-s", str(START + 8 * MINUTE), "--no-force"], {0: 5, 1: None}),
        (["-s", str(START + MINUTE), "--no-force"], {0: 1, 1: None}),
        (["-s", str(START + MINUTE), "--queue", "1"], {0: 5, 1: 1}),
        (["-s", "now"], {0: 10, 1: 5}),
        (["-s", "-1"], {0: 10, 1: 5}),
        (["-s", "2099-01-01"], {0: 9, 1: 4}),
        (["-s", "0"], {0: 0, 1: 0}),
        (["-s", "2026-01-01#00:02:00:000", "--tz", "UTC"], {0: 2, 1: 2}),
    ],
)
def test_queues_go_where_the_options_say(orders, offsets, options, expected):
    result = by_time(*options, "--yes")
    assert result.code == 0, result.err
    assert offsets() == expected


@pytest.mark.conformance("G12")
@pytest.mark.parametrize(
    ("minute", "new", "note"), [(4, 4, None), (5, 5, None), (6, 5, "kept: 6 is ahead")]
)
def test_without_force_progress_may_stay_where_it_is(orders, minute, new, note):
    """To the present offset is a reset like one that goes back: running members begin there."""
    moment = ("-s", str(START + minute * MINUTE), "--queue", "0", "--no-force")
    [row] = by_time(*moment, "--dry-run", "-o", "json").json()
    assert (row["new_offset"], row["note"]) == (new, note)
    before = ProgressTable.from_entry(ProgressFile(orders).read().entry()).get("orders@g", 0)
    assert by_time(*moment, "--yes").code == 0
    after = ProgressFile(orders).read().get("orders@g", 0)
    assert after.offset == new
    assert after.generation == before.generation + (note is None)


def test_people_get_the_result(orders):
    result = by_time("-s", "now", "--yes", "--no-headers", "--columns", "queue_id,new_offset")
    assert result.out == "0\t10\n1\t5\n"
    assert "2 queues: 1 forward, 5 messages" in result.err
    assert "skipped, by tag: b 3, a 2" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("how", [["--yes"], ["--dry-run"], []])
def test_queues_that_are_all_kept_are_shown_and_nothing_is_asked(orders, offsets, how):
    result = by_time("-s", "now", "--no-force", "-o", "json", *how)
    assert result.code == 0, result.err
    assert [(row["old_offset"], row["new_offset"], row["note"]) for row in result.json()] == [
        (5, 5, "kept: 10 is ahead"),
        (None, None, "kept: it has no progress"),
    ]
    assert "there is nothing to change" in result.err
    assert offsets() == {0: 5, 1: None}


def test_without_a_terminal_it_needs_yes(orders, offsets):
    result = by_time("-s", "now")
    assert result.code == 7
    assert "--yes" in result.err
    assert offsets() == {0: 5, 1: None}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-s", "yesteday"], 2, "is not a time; did you mean 'yesterday'?"),
        (["-s", "now", "--boundary", "middle"], 2, "is not one of nearest49, lower, upper"),
        (["-s", "now", "--queue", "7"], 3, "topic orders has no queue 7"),
        (["-s", "now", "-t", "nowhere"], 3, "topic nowhere does not exist"),
        (["-s", "now", "-g", "a b"], 2, "a b"),
    ],
)
def test_what_makes_no_sense_is_refused(orders, offsets, options, code, words):
    result = by_time(*options, "--yes")
    assert result.code == code
    assert words in result.err
    assert offsets() == {0: 5, 1: None}


def test_a_new_group_gets_its_first_progress_and_is_told_so(orders, offsets):
    asked = ("resetOffsetByTime", "-g", "new", "-t", "orders", "-s", "now", "--yes")
    assert run(*asked).code == 3
    result = run(*asked, "--new-group")
    assert result.code == 0
    assert "group new has no progress anywhere yet" in result.err
    assert offsets("new") == {0: 10, 1: 5}


def test_beside_a_java_broker_it_only_looks(orders):
    with java_lock(orders):
        assert by_time("-s", "now", "--yes").code == 5
        looked = by_time("-s", "now", "--dry-run", "-o", "json")
    assert looked.code == 0
    assert [row["new_offset"] for row in looked.json()] == [10, 5]


def test_only_the_file_of_offsets_changes(orders):
    def others():
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_size)
            for path in sorted(orders.rglob("*"))
            if path.is_file()
            and not path.name.startswith(("offsets.", "consumerOffset"))
            and "journal" not in path.as_posix()
        }

    before = others()
    assert by_time("-s", "now", "--yes").code == 0
    assert others() == before
