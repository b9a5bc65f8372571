"""Loads from end to end: real stores, processes and signals."""

import itertools
import json
import os
import re
import signal

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl import exit_codes
from rmqctl.bench.bodies import sized_bodies
from rmqctl.bench.load import Load, Measured, Plan
from rmqctl.bench.run import rate_error
from storage.configs.topics import TopicConfig
from storage.readonly import StoreView
from tests.support.cli import limited, run, start
from tests.support.samples import SMALL, new_store

QUICK = ("--warm-up", "0s", "--rate", "2000/s")


def messages(topic="rmqctl-bench"):
    result = run("consume", topic, "-e", "-o", "jsonl")
    return [json.loads(line) for line in result.lines]


def check_percentiles(latency, count):
    assert latency["count"] == count
    ordered = [latency[name] for name in ("p50", "p90", "p99", "p99_9", "p99_99", "max")]
    assert ordered == sorted(ordered)
    assert latency["p50"] >= 0


@pytest.mark.feature(10, 11)
@pytest.mark.slow
def test_a_load_makes_its_topic_and_measures_acknowledgements(store):
    result = run("bench", "produce", *QUICK, "-c", 300, "--size", 64, "--queues", 2, "-o", "json")
    assert (result.code, result.err) == (0, "")
    row = result.json()
    assert (row["topic"], row["queues"], row["sent"]) == ("rmqctl-bench", 2, 300)
    assert (row["sent_bytes"], row["flush"], row["missed"]) == (300 * 64, "ASYNC_FLUSH", 0)
    assert (row["target_rate"], row["not_flushed"], row["received"]) == (2000, 0, None)
    check_percentiles(row["ack_us"], 300)
    check_percentiles(row["pacing_us"], 300)
    stored = messages()
    assert len(stored) == 300
    assert all(re.fullmatch(r"M\d{19}(0123456789abcdef)+.*", row["body"]) for row in stored)
    assert len({row["body"][:20] for row in stored}) == 300


@pytest.mark.slow
def test_both_sides_are_measured_and_no_progress_moves(store):
    result = run("bench", "both", *QUICK, "-c", 200, "-o", "json")
    assert (result.code, result.err) == (0, "")
    row = result.json()
    assert (row["sent"], row["received"]) == (200, 200)
    assert row["received_bytes"] == row["sent_bytes"] == 200 * 1024
    check_percentiles(row["end_to_end_us"], 200)
    assert row["end_to_end_us"]["max"] >= row["ack_us"]["p50"]
    with StoreView.open(store) as view:
        assert not view.consumer_offsets()
    assert run("group", "list", "-o", "tsv", "--no-headers", "--where", "kind = normal").out == ""


@pytest.mark.slow
def test_a_template_is_measured_from_end_to_end_too(store):
    result = run(
        *("bench", "both", *QUICK, "-c", 50, "--batch", 8, "--template", '{{"n": %i}'),
        *("-o", "json"),
    )
    assert result.code == 0, result.err
    row = result.json()
    assert (row["sent"], row["received"], row["end_to_end_us"]["count"]) == (50, 50, 50)
    assert [message["body"] for message in messages()] == [f'{{{{"n": {n}}}' for n in range(1, 51)]


@pytest.mark.parametrize(
    ("threads", "count"),
    [
        *((3, 1), (3, 50)),
        *(pytest.param(*more, marks=pytest.mark.long) for more in ((1, 1), (3, 7), (1, 16))),
    ],
)
@pytest.mark.slow
def test_a_count_is_sent_exactly(store, threads, count):
    result = run(
        *("bench", "produce", "--warm-up", "0s", "--batch", 8, "--threads", threads, "-c", count),
        *("-o", "json"),
    )
    assert result.code == 0, result.err
    assert result.json()["sent"] == count == result.json()["ack_us"]["count"]
    assert len(messages()) == count


@pytest.mark.slow
def test_a_last_send_of_fewer_messages_changes_no_weight_of_those_before(store):
    load = ("bench", "produce", "--rate", "2000/s", "--warm-up", "0s", "--batch", 100)
    row = run(*load, "-c", 301, "-o", "json").json()
    assert row["sent"] == row["ack_us"]["count"] == 301
    assert row["pacing_us"]["count"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("rate", [2000.0, None])
def test_what_was_sent_before_an_error_is_measured(store, rate):
    sized = sized_bodies(20)

    def fails_late(first, size, stamp):
        if first > 25:
            raise OSError("no bodies any more")
        return sized(first, size, stamp)

    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        load = Load(broker, Plan("t", fails_late, True, rate, 5, 1, 0, None, 100))
        load.start()
        assert load.wait(60)
    assert str(load.error) == "no bodies any more"
    measured = load.measured()
    assert (measured.messages, measured.ack.count) == (25, 25)
    assert measured.pacing.count == (0 if rate is None else 5)


@pytest.mark.slow
def test_the_warm_up_is_sent_and_not_measured(store):
    result = run(
        *("bench", "both", "--rate", "500/s", "--warm-up", "200ms", "-c", 100, "-o", "json")
    )
    row = result.json()
    assert row["sent"] == row["ack_us"]["count"] == row["end_to_end_us"]["count"] == 100
    kinds = [message["body"][0] for message in messages()]
    assert kinds.count("M") == 100
    assert 1 <= kinds.count("W") == row["received"] - 100 <= 101


@pytest.mark.slow
def test_a_duration_ends_a_load_and_counts_what_was_due(store):
    result = run(
        *("bench", "produce", "--rate", "200/s", "--warm-up", "0s", "--duration", "1500ms"),
        *("-o", "json", "--progress", "plain"),
    )
    row = result.json()
    assert row["sent"] + row["missed"] == 300
    assert 0 <= row["rate_error"] <= 1
    assert re.search(r"^1s: \d+ messages sent, \d+ in all$", result.err, re.MULTILINE)


@pytest.mark.slow
def test_reading_alone_measures_a_rate(store):
    run("bench", "produce", *QUICK, "-c", 100)
    row = run("bench", "consume", "-o", "json").json()
    assert (row["received"], row["received_bytes"]) == (100, 100 * 1024)
    assert row["receive_rate"] > 0
    assert (row["sent"], row["end_to_end_us"]) == (None, None)
    assert run("bench", "consume", "-c", 33, "-o", "json").json()["received"] == 33


def test_a_reader_makes_no_topic_and_its_help_says_so(store):
    result = run("bench", "consume", "nothing")
    assert result.code == exit_codes.NOT_FOUND
    assert "there is no topic nothing" in result.err
    assert run("topic", "describe", "nothing").code == exit_codes.NOT_FOUND
    text = " ".join(run("bench", "consume", "--help").out.split())
    assert "created" not in text
    assert "default: 10s" not in text  # without --follow there is none
    assert "with --follow: 10s" in text


@pytest.mark.parametrize("damaged", [[3], [*range(40)]])
def test_what_cannot_be_read_is_said(tmp_path, damaged):
    root = new_store(tmp_path / "s", SMALL)
    bodies = b"".join(b"number %d\n" % number for number in range(50))
    assert run("-S", root, "produce", "t", "-Q", 0, stdin=bodies).code == 0
    with StoreView.open(root) as view:
        places = [unit[0] for n in damaged if (unit := view.unit("t", 0, n)) is not None]
    (log,) = (root / "commitlog").iterdir()
    with log.open("r+b") as file:
        for place in places:
            file.seek(place + 4)
            file.write(bytes(4))
    result = run("-S", root, "bench", "consume", "t", "-o", "json")
    assert result.code == exit_codes.PARTLY
    assert result.json()["received"] == 50 - len(damaged)
    lost = "1 message" if len(damaged) == 1 else "40 messages"
    assert f"{lost} could not be read; 'rmqctl store fsck' shows why" in result.err


@pytest.mark.slow
def test_a_reader_in_another_process_measures_from_end_to_end(store):
    run("bench", "produce", *QUICK, "-c", 1)
    with start("bench", "consume", "-F", "-c", 40, "--duration", "60s", "-o", "json") as reader:
        sent = 0
        while reader.poll() is None and sent < 60:
            run("bench", "produce", *QUICK, "-c", 40)
            sent += 1
        out, err = reader.communicate(timeout=60)
    row = json.loads(out)
    assert (row["received"], row["end_to_end_us"]["count"]) == (40, 40), err


@pytest.mark.slow
def test_each_acknowledgement_after_a_sync(store):
    row = run("bench", "produce", "--sync", *QUICK, "-c", 20, "--threads", 2, "-o", "json").json()
    assert (row["flush"], row["threads"], row["sent"]) == ("SYNC_FLUSH", 2, 20)


@pytest.mark.slow
def test_a_topic_of_other_messages_is_refused(store):
    run("produce", "orders", stdin=b"x\n")
    result = run("bench", "produce", "orders", *QUICK, "-c", 1)
    assert (result.code, len(messages("orders"))) == (exit_codes.REFUSED, 1)
    assert "topic orders exists" in result.err
    assert run("bench", "produce", "orders", *QUICK, "-c", 1, "--existing").code == 0
    assert len(messages("orders")) == 2
    assert run("bench", "produce", "rmqctl-bench-2", *QUICK, "-c", 1).code == 0
    again = run("bench", "produce", "rmqctl-bench-2", *QUICK, "-c", 1, "--queues", 9)
    assert again.code == exit_codes.REFUSED
    assert "exists with 4 queues, not 9" in again.err


@pytest.mark.slow
def test_the_topic_is_deleted_on_request(store):
    result = run("bench", "both", *QUICK, "-c", 10, "--delete-topic", "-o", "json")
    assert result.code == 0, result.err
    assert result.json()["received"] == 10
    assert "deleted the topic rmqctl-bench" in result.err
    assert run("topic", "describe", "rmqctl-bench").code == exit_codes.NOT_FOUND


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("produce", "--size", "19"), 2, "19 is not from 20"),
        (("produce", "--size", "1K", "--template", "x"), 2, "exclude each other"),
        (("produce", "--template", "%o"), 2, "cannot be generated"),
        (("produce", "--template", ""), 2, "--template: the message body length is zero"),
        (("both", "--template", "", "--existing"), 2, "the message body length is zero"),
        (("produce", "--rate", "x"), 2, "not a rate"),
        (("produce", "--existing", "--delete-topic"), 2, "exclude each other"),
        (("produce", "--queues", "100000", "T"), 2, "100000 is not a number of queues"),
        (("both", "--queues", "65537"), 2, "65537 is not a number of queues (1 to 65536)"),
        (("both", "-n"), 2, "no dry run"),
        (("produce", "a b"), 2, "a b"),
        (("consume", "nosuch"), 3, "no topic nosuch"),
    ],
)
def test_bad_input_is_one_sentence(store, words, code, reason):
    result = run("bench", *words)
    assert (result.code, result.raw) == (code, b"")
    assert reason in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
def test_an_error_of_the_reader_process_has_its_exit_code(store):
    groups = store / "config" / "subscriptionGroup.json"
    groups.unlink(missing_ok=True)
    os.mkfifo(groups)
    result = run("bench", "both", *QUICK, "-c", 9)
    groups.unlink()  # the fixture checks the store
    assert result.code == 4
    assert "subscriptionGroup.json is damaged at byte 0: it is no file" in result.err


@pytest.mark.parametrize("command", ["produce", "both"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_load_that_is_ended_early_prints_what_it_measured(store, command, number):
    with start(
        *("bench", command, "--rate", "100/s", "--duration", "60s", "--warm-up", "0s"),
        *("-o", "json", "--progress", "plain"),
    ) as process:
        assert b"messages sent" in process.stderr.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    row = json.loads(out)
    assert row["sent"] == len(messages()) == row["ack_us"]["count"]
    if command == "both":
        assert row["received"] == row["sent"]
    assert f"ended early: {row['sent']:,} messages stored in rmqctl-bench".encode() in err


def test_the_rate_error_is_that_of_the_worst_second():
    plan = Plan("t", sized_bodies(20), False, 100.0, 1, 1, 0, 3_000_000_000, None)
    measured = Measured()
    measured.seconds = {0: 100, 1: 98, 2: 101}
    assert rate_error(plan, measured) == 0.02
    measured.seconds = {0: 100, 2: 100}
    assert rate_error(plan, measured) == 1.0
    assert rate_error(plan._replace(rate=None), measured) is None


def test_the_rate_error_ends_where_the_load_was_stopped():
    plan = Plan("t", sized_bodies(20), False, 100.0, 1, 1, 0, 60_000_000_000, None)
    measured = Measured()
    measured.seconds = {0: 100, 1: 98, 2: 12}
    assert rate_error(plan, measured, 2_100_000_000) == 0.02
    assert rate_error(plan, measured, 900_000_000) is None
    assert rate_error(plan, measured) == 1.0


def test_less_than_one_send_a_second_has_no_rate_error():
    plan = Plan("t", sized_bodies(20), False, 0.5, 1, 1, 0, 6_000_000_000, None)
    measured = Measured()
    measured.seconds = {0: 1, 2: 1, 4: 1}
    assert rate_error(plan, measured) is None
    assert rate_error(plan._replace(rate=100.0, batch=200), measured) is None


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 8])
def test_what_was_not_due_when_a_load_was_stopped_is_not_missed(store, batch):
    with start(
        *("bench", "produce", "--rate", "100/s", "--duration", "60s", "--warm-up", "0s"),
        *("--batch", batch, "-o", "json", "--progress", "plain"),
    ) as process:
        # 110 messages are due only after a whole second, however long the start takes.
        sent = 0
        while sent < 110:
            line = process.stderr.readline().decode()
            sent = int(line.partition(" sent, ")[2].partition(" in all")[0].replace(",", ""))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    row = json.loads(out)
    assert sent <= row["sent"] < 6_000
    assert row["missed"] <= 200  # of those that were due, not the 6,000 of the whole load
    assert row["rate_error"] < 1


@pytest.mark.slow
@pytest.mark.parametrize("batch", [300, 512, 2500])
def test_only_whole_sends_that_are_due_can_be_missed(store, batch):
    """All are sent in time: the clock moves only when it is read."""
    clock = itertools.count(0, 3_000_000).__next__
    plan = Plan("t", sized_bodies(20), False, 10_000.0, batch, 1, 10_000_000, 100_000_000, None)
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        load = Load(broker, plan, clock)
        load.start()
        assert load.wait(60)
    measured = load.measured()
    ticks = [n for n in range(1000) if 10 <= n * batch / 10 < 110]
    assert (measured.messages, load.missed(measured)) == (len(ticks) * batch, 0)
    assert load.missed(Measured()) == len(ticks) * batch


@pytest.mark.slow
def test_a_time_limit_ends_a_load_that_prints_what_it_measured(store):
    load = ("bench", "produce", "--rate", "100/s", "--duration", "90s", "--warm-up", "0s")
    result = limited(
        lambda limit: run(*load, "--timeout", limit, "-o", "json"),
        lambda result: bool(result.out and result.json()["sent"]),
    )
    assert result.code == exit_codes.TIMED_OUT
    row = result.json()
    assert 0 < row["sent"] == len(messages()) < 9_000
    assert row["missed"] <= 200
