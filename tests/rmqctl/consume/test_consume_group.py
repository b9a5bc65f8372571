"""``consume -g``: a member of a group, in real processes where that matters."""

import json
import os
import select
import signal
import time
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.configs.subscription_groups import SubscriptionGroupConfig
from tests.support.cli import call, run, start
from tests.support.consumers import aged_broker
from tests.support.manual_time import ManualClock

MEANWHILE = 30
"""Seconds within which a process gets somewhere by itself."""


@contextmanager
def running(*options, topic="t", group="g"):
    """A consumer in a process of its own; killed if the test ends before it."""
    with start("consume", topic, "-g", group, *options) as process:
        try:
            yield process
        finally:
            process.kill()


def send(*bodies, topic="t", options=()):
    data = b"".join(body.encode() + b"\n" for body in bodies)
    result = run("produce", topic, "-q", *options, stdin=data)
    assert result.code == 0, result.err


def consume(*options, group="g", topic="t"):
    result = run("consume", topic, "-g", group, *options)
    assert result.code == 0, result.err
    return result.lines


def bodies(first, end):
    return [f"m{i}" for i in range(first, end)]


def committed(store, group="g", topic="t"):
    """The group's committed offset of each queue."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        return broker.consumer_offsets().get((group, topic), {})


def stored(topic):
    """All messages of a topic, as their JSON says."""
    result = run("consume", topic, "-e", "-o", "json")
    return result.json() if result.code == 0 else []


def wait_until(condition):
    deadline = time.monotonic() + MEANWHILE
    while not condition():
        assert time.monotonic() < deadline, "it never came true"


def read_some(process, timeout=MEANWHILE):
    if not select.select([process.stdout], [], [], timeout)[0]:
        return ""
    return os.read(process.stdout.fileno(), 1 << 16).decode()


def read_lines(process, count):
    """Whole lines of a process's output, ``count`` of them or a few more."""
    text = ""
    while text.count("\n") < count:
        more = read_some(process)
        assert more, f"only {text!r} came"
        text += more
    return text.splitlines()


def end(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.wait(MEANWHILE)
    return process.returncode


@pytest.fixture
def one_queue(store):
    """Ten messages in one queue."""
    run("topic", "create", "t", "--queues", 1)
    send(*bodies(0, 10))
    return store


@pytest.fixture
def ten(store):
    """Ten messages, two in each of five queues."""
    run("topic", "create", "t", "--queues", 5)
    send(*bodies(0, 10))
    return store


class TestProgress:
    @pytest.mark.feature(13)
    @pytest.mark.slow
    def test_a_group_goes_on_where_it_stopped(self, one_queue):
        assert consume("-c", 4) == bodies(0, 4)
        assert consume("-e") == bodies(4, 10)
        assert consume("-e") == []
        send("m10")
        assert consume("-e") == ["m10"]
        assert consume("-e", group="other")[0] == "m0"

    @pytest.mark.slow
    @pytest.mark.feature(13)
    @pytest.mark.parametrize("options", [[], ["--orderly"], ["--threads", 3, "--orderly"]])
    def test_count_commits_exactly_what_was_printed(self, ten, options):
        printed = consume("-c", 3, *options)
        assert len(printed) == 3
        assert sum(committed(ten).values()) == 3
        assert sorted(printed + consume("-e")) == bodies(0, 10)

    @pytest.mark.slow
    @pytest.mark.feature(18)
    def test_an_end_is_where_the_queue_ended_at_the_start(self, one_queue):
        """Messages that come while it reads are not read, though they are in the same pull."""
        echo = ["-o", "jsonl"]
        copied = consume("--offset", ":7", *echo)
        assert [json.loads(line)["body"] for line in copied] == bodies(0, 7)
        assert committed(one_queue) == {0: 7}
        assert consume("-e") == bodies(7, 10)

    @pytest.mark.slow
    def test_the_end_of_some_is_not_the_end_of_others(self, ten):
        assert sorted(consume("--offset", ":1")) == bodies(0, 5)
        assert committed(ten) == dict.fromkeys(range(5), 1)

    @pytest.mark.slow
    def test_what_a_filter_passes_is_committed_too(self, ten):
        assert consume("-e", "--body", "m7") == ["m7"]
        assert consume("-e") == []

    @pytest.mark.slow
    def test_what_its_tag_leaves_out_at_the_end_is_passed(self, one_queue):
        send("wanted", options=["--tag", "x"])
        send("m10", "m11")
        assert consume("-e", "--tag", "x") == ["wanted"]
        assert committed(one_queue) == {0: 13}

    @pytest.mark.slow
    def test_reading_without_committing_leaves_progress_alone(self, ten):
        assert len(consume("-e", "--no-commit")) == 10
        consume("-c", 4)
        assert len(consume("-e", "--no-commit")) == 6
        assert len(consume("-e", "--no-commit", "--offset", "start")) == 10
        assert len(consume("-e")) == 6

    @pytest.mark.slow
    def test_a_group_is_placed_only_where_it_has_no_progress(self, one_queue):
        assert consume("--offset", "4", "-e") == bodies(4, 10)
        result = run("consume", "t", "-g", "g", "--offset", "0", "-e")
        assert (result.code, result.raw) == (7, b"")
        assert "offset reset" in result.err
        assert consume("--offset", "stored", "-e") == []

    @pytest.mark.slow
    def test_where_a_new_group_begins(self, one_queue):
        assert consume("-e", group="young") == bodies(0, 10)
        assert consume("--from-where", "first", "-e", group="first") == bodies(0, 10)
        at = ["--from-where", "timestamp", "--consume-timestamp", "-1h"]
        assert consume(*at, "-e", group="time") == bodies(0, 10)

    @pytest.mark.slow
    def test_only_some_queues(self, ten):
        there = [row["body"] for row in stored("t") if row["queue_id"] in (1, 3)]
        assert sorted(consume("-Q", "1,3", "-e")) == sorted(there)
        assert committed(ten) == {1: 2, 3: 2}

    @pytest.mark.slow
    def test_a_body_that_can_not_be_inflated_is_a_failure_of_its_message(self, one_queue):
        with EmbeddedBroker.open(one_queue) as broker:
            from broker.api.send import SendOptions
            from storage.format.message import Message

            broker.send(Message("t", b"no zlib"), 0, SendOptions(sys_flag=1))
        send("behind it")
        result = run("consume", "t", "-g", "g", "-e")
        assert (result.code, result.lines) == (8, [*bodies(0, 10), "behind it"])
        assert "(topic t, queue 0, offset 10): the compressed body is damaged" in result.err
        assert committed(one_queue) == {0: 12}
        assert run("retry", "browse", "g", "-o", "jsonl").code == 0


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "code", "reason"),
        [
            (["--set", "consumeTimout=5"], 2, "do you mean consumeTimeout?"),
            (["--set", "consumeTimeout=soon"], 2, "whole number"),
            (["--set", "pullBatchSize=2000"], 2, "pullBatchSize is 2000; it must be 1 to 1024"),
            (["--set", "pullBatchSize"], 2, "NAME=VALUE"),
            (["--threads", "0"], 2, "--threads"),
            (["--threads", "1001"], 2, "is 1001; it must be 1 to 1000"),
            (["--exec", "no-such-program-here"], 2, "there is no program"),
            (["--exec", "'"], 2, "--exec"),
            (["--exec", "true", "--no-commit"], 2, "no --no-commit"),
            (["--exec", "true", "-f", "%s"], 2, "--exec and --format exclude each other"),
            (["--broadcast", "--offset", "1"], 2, "use --from-where"),
            (["--set", "messageModel=BROADCASTING", "--offset", "1"], 2, "use --from-where"),
            (["--set", "messageModel=broadcasting", "--delay-level", 1], 2, "has no retries"),
            (["--last", "1"], 2, "--last and --group exclude each other"),
            (["--tag", "a || "], 0, ""),
        ],
    )
    def test_what_makes_no_sense_is_one_sentence(self, one_queue, options, code, reason):
        result = run("consume", "t", "-g", "g", "-e", *options)
        assert (result.code, result.raw) == (code, b""), result.err
        assert reason in result.err
        assert result.err.count("\n") == (1 if code else 0)

    @pytest.mark.parametrize(
        "option", [["--threads", 2], ["--orderly"], ["--broadcast"], ["--exec", "true"]]
    )
    def test_options_of_members_need_a_group(self, one_queue, option):
        result = run("consume", "t", "-e", *option)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert f"{option[0]} needs --group" in result.err

    @pytest.mark.slow
    def test_a_group_that_is_disabled(self, one_queue):
        with EmbeddedBroker.open(one_queue) as broker:
            broker.update_group(SubscriptionGroupConfig("g", consume_enable=False))
            broker.update_group(SubscriptionGroupConfig("h", consume_broadcast_enable=False))
        result = run("consume", "t", "-g", "g", "-e")
        assert (result.code, result.raw) == (7, b"")
        assert "disabled" in result.err
        assert run("consume", "t", "-g", "h", "-e", "--broadcast").code == 7
        assert run("consume", "t", "-g", "h", "-e").code == 0

    @pytest.mark.slow
    def test_a_member_of_the_same_name(self, one_queue):
        named = ["--set", "instanceName=one"]
        with running(*named) as first:
            read_lines(first, 10)
            second = run("consume", "t", "-g", "g", "-e", *named)
            assert (second.code, second.raw) == (7, b"")
            assert f"process {first.pid}" in second.err
            assert end(first) == 143


class TestSharing:
    @pytest.mark.slow
    @pytest.mark.feature(13)
    def test_members_divide_the_queues(self, ten):
        with running() as first:
            assert sorted(read_lines(first, 10)) == bodies(0, 10)
            wait_until(lambda: sum(committed(ten).values()) == 10)
            with running() as second:
                wait_until(lambda: len(queues_of("g")) == 2 and is_divided())
                send(*bodies(10, 30))
                wait_until(lambda: sum(committed(ten).values()) == 30)
                assert [end(first, signal.SIGINT), end(second, signal.SIGINT)] == [130, 130]
                printed = [process.stdout.read().decode().split() for process in (first, second)]
        assert sorted(printed[0] + printed[1]) == sorted(bodies(10, 30))
        assert sorted(map(len, printed)) == [8, 12]

    @pytest.mark.slow
    def test_the_queues_of_a_member_that_is_killed_go_to_the_others(self, ten):
        with running() as first, running() as second:
            wait_until(lambda: len(queues_of("g")) == 2 and is_divided())
            first.kill()
            first.wait(MEANWHILE)
            wait_until(lambda: len(queues_of("g")) == 1 and is_divided())
            send(*bodies(10, 15))
            got: set[str] = set()
            while not got >= set(bodies(10, 15)):
                got.update(read_lines(second, 1))
            assert end(second) == 143
        assert consume("-e") == []

    @pytest.mark.slow
    def test_a_visitor_that_stops_at_the_end_leaves_the_others_theirs(self, ten):
        with running() as stays:
            read_lines(stays, 10)
            run("consume", "t", "-g", "g", "-e")
            wait_until(lambda: len(queues_of("g")) == 1 and is_divided())
            send(*bodies(10, 15))
            got: set[str] = set()
            while not got >= set(bodies(10, 15)):
                got.update(read_lines(stays, 1))
            assert end(stays) == 143

    @pytest.mark.slow
    def test_broadcasting_gives_every_message_to_every_member(self, ten):
        every = ["--broadcast", "--from-where", "first"]
        first = consume("-e", *every, "--set", "instanceName=a")
        assert sorted(first) == bodies(0, 10)
        assert sorted(consume("-e", *every, "--set", "instanceName=b")) == bodies(0, 10)
        assert consume("-e", *every, "--set", "instanceName=a") == []
        assert committed(ten) == {}

    @pytest.mark.slow
    def test_a_broadcast_by_a_setting_has_no_progress_of_the_group(self, ten):
        every = ["--from-where", "first", "--set", "messageModel=BROADCASTING"]
        assert sorted(consume("-e", *every)) == bodies(0, 10)
        assert committed(ten) == {}
        assert consume("-e", *every) == []
        assert len(consume("-e", *every, "--set", "messageModel=CLUSTERING")) == 10
        assert committed(ten)

    @pytest.mark.slow
    def test_progress_of_a_broadcast_is_that_of_its_store(self, ten, tmp_path):
        """Both brokers have one name; the second store has fewer messages."""
        every = ["--broadcast", "--from-where", "first"]
        assert sorted(consume("-e", *every)) == bodies(0, 10)
        other = ["-S", tmp_path / "other"]
        assert run("store", "init", *other).code == 0
        assert run("produce", "t", "-q", *other, stdin=b"new\n").code == 0
        assert consume("-e", *every, *other) == ["new"]
        assert consume("-e", *every) == []

    @pytest.mark.slow
    def test_members_that_do_not_fit_are_told_of_each_other(self, one_queue):
        with running("--tag", "a") as first:
            wait_until(lambda: queues_of("g") == [["t:0"]])
            result = run("consume", "t", "-g", "g", "-c", 0, "--tag", "b")
            assert f"process {first.pid}" in result.err
            assert "subscribes to 'a' of t, this one to 'b'" in result.err
            assert end(first) == 143


def queues_of(group):
    """The queues of topic t that each member of a group has."""
    result = run("group", "clients", group, "-o", "json")
    rows = result.json() if result.code == 0 else []
    return [[q for q in row["queues"] or () if q.startswith("t:")] for row in rows]


def is_divided():
    """Whether each of the five queues has one owner, and each member of group g a queue."""
    queues = queues_of("g")
    return all(queues) and sorted(chain(*queues)) == [f"t:{i}" for i in range(5)]


class TestExec:
    @pytest.mark.slow
    def test_the_program_gets_body_and_environment(self, store, tmp_path):
        run("topic", "create", "t", "--queues", 1)
        options = ["--tag", "new", "-k", "k1", "-k", "k2", "-D", r"\0"]
        run("produce", "t", *options, "-q", stdin=b"two\nlines\0")
        names = ["TOPIC", "QUEUE_ID", "QUEUE_OFFSET", "TAGS", "KEYS", "RECONSUME_TIMES", "MSG_ID"]
        script = "cat; for n in {}; do eval echo $n=\\$RMQ_$n; done".format(" ".join(names))
        result = call("consume", "t", "-g", "g", "-e", "--exec", f'sh -c "{script}"')
        assert result.code == 0, result.err
        (message,) = stored("t")
        values = ["t", 0, 0, "new", "k1 k2", 0, message["msg_id"]]
        said = [f"{name}={value}" for name, value in zip(names, values, strict=True)]
        assert result.out == "two\nlines" + "\n".join(said) + "\n"

    @pytest.mark.slow
    def test_a_message_that_fails_comes_again_and_is_a_dead_letter_in_the_end(self, one_queue):
        script = "sh -c 'read x; echo first >&2; echo no $x >&2; exit 3'"
        limits = ["--max-reconsume-times", 1, "--delay-level", 1]
        result = call("consume", "t", "-g", "g", "--offset", 9, "-c", 2, *limits, "--exec", script)
        assert result.code == 1, result.err
        assert result.err.splitlines()[:4] == ["first", "no m9"] * 2
        (dead,) = stored("%DLQ%g")
        assert (dead["body"], dead["reconsume_times"]) == ("m9", 2)
        assert dead["properties"]["RMQCTL_FAILURE_MESSAGE"] == "exit code 3: no m9"
        assert committed(one_queue) == {0: 10}
        assert committed(one_queue, topic="%RETRY%g") == {0: 1}

    @pytest.mark.slow
    def test_minus_one_makes_it_a_dead_letter_at_once(self, one_queue):
        result = call("consume", "t", "-g", "g", "-c", 1, "--delay-level", -1, "--exec", "false")
        assert result.code == 1, result.err
        assert [row["body"] for row in stored("%DLQ%g")] == ["m0"]

    @pytest.mark.slow
    def test_orderly_the_queue_waits_for_the_message_that_fails(self, one_queue, tmp_path):
        tried = tmp_path / "tried"
        script = f"sh -c 'read x; echo $x; echo >> {tried}; test $(wc -l < {tried}) -gt 2'"
        suspended = ["--set", "suspendCurrentQueueTimeMillis=10"]
        result = call("consume", "t", "-g", "g", "--orderly", "-c", 5, *suspended, "--exec", script)
        assert result.code == 0, result.err
        assert result.lines == ["m0", "m0", "m0", "m1", "m2"]
        assert committed(one_queue) == {0: 3}

    @pytest.mark.slow
    def test_threads_run_at_the_same_time(self, one_queue, tmp_path):
        """Each of three waits until all three have begun."""
        script = (
            f"sh -c 'touch {tmp_path}/$RMQ_MSG_ID; "
            f"while [ $(ls {tmp_path} | grep -c {'[0-9A-F]' * 16}) -lt 3 ]; do :; done'"
        )
        result = call(
            "consume", "t", "-g", "g", "--threads", 3, "-c", 3, "--exec", script, timeout=MEANWHILE
        )
        assert result.code == 0, result.err
        assert committed(one_queue) == {0: 3}


class TestRanges:
    """A member hears of its range what a reader without a group hears."""

    @pytest.mark.parametrize("options", [["--offset", "0:2"], ["--from", "-1h", "--to", "+1h"]])
    def test_no_word_about_a_range_that_is_there(self, one_queue, options):
        result = run("consume", "t", "-g", "g", *options, "-e")
        assert (result.code, result.lines[:2], result.err) == (0, ["m0", "m1"], "")

    def test_a_range_of_nothing_is_told(self, one_queue):
        result = run("consume", "t", "-g", "g", "--offset", "3:3", "-e")
        assert (result.code, result.lines) == (0, [])
        assert "no message of t lies in the range" in result.err

    @pytest.mark.slow
    def test_an_end_that_the_group_has_reached_is_told(self, one_queue):
        assert consume("-e") == bodies(0, 10)
        result = run("consume", "t", "-g", "g", "--to", "+1h", "-e")
        assert (result.code, result.lines) == (0, [])
        assert "no message of t lies in the range" in result.err

    @pytest.mark.slow
    def test_offsets_that_do_not_exist_yet_are_told(self, one_queue):
        result = run("consume", "t", "-g", "g", "--offset", "99", "-e")
        assert (result.code, result.lines) == (0, [])
        assert "queue 0 of t ends at 10: offset 99 does not exist yet" in result.err

    @pytest.mark.slow
    def test_offsets_that_are_deleted_are_told(self, tmp_path):
        with aged_broker(tmp_path / "s", ManualClock()) as broker:
            least = broker.min_offset("T", 0)
        read = ("consume", "T", "-S", tmp_path / "s", "-g", "g", "-c", 1)
        result = run(*read, "--offset", 3, "-f", "%o")
        gone = f"queue 0 of T begins at {least}: offset 3 to {least - 1} is deleted"
        assert (result.code, result.out) == (0, str(least)), result.err
        assert gone in result.err


class TestEnding:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    @pytest.mark.slow
    def test_a_signal_ends_it_cleanly_and_what_was_printed_is_committed(self, ten, number, code):
        with running() as process:
            read_lines(process, 10)
            assert end(process, number) == code
            assert process.stderr.read() == b""
        assert sum(committed(ten).values()) == 10

    @pytest.mark.slow
    def test_what_was_printed_is_committed_within_moments(self, one_queue):
        with running() as process:
            read_lines(process, 10)
            wait_until(lambda: committed(one_queue) == {0: 10})
            process.kill()
            process.wait(MEANWHILE)
        assert consume("-e") == []

    @pytest.mark.slow
    def test_a_message_in_work_is_finished_first(self, one_queue, tmp_path):
        write_lock = tmp_path / "gate"
        os.mkfifo(write_lock)
        script = f"sh -c 'echo $RMQ_QUEUE_OFFSET; read x < {write_lock}'"
        with running("--exec", script) as process:
            assert read_lines(process, 1) == ["0"]
            process.send_signal(signal.SIGINT)
            write_lock.write_text("go\n")
            process.wait(MEANWHILE)
        assert process.returncode == 130
        assert committed(one_queue) == {0: 1}

    @pytest.mark.slow
    def test_a_second_ctrl_c_does_not_wait_for_it(self, one_queue, tmp_path):
        write_lock = tmp_path / "gate"
        os.mkfifo(write_lock)
        script = f"sh -c 'echo $RMQ_QUEUE_OFFSET; read x < {write_lock}'"
        with running("--exec", script) as process:
            assert read_lines(process, 1) == ["0"]
            wait_until(lambda: process.poll() is not None or process.send_signal(signal.SIGINT))
        assert process.returncode == 130
        opened: list[int] = []

        def open_gate() -> bool:
            with suppress(OSError):  # unless the program reads, which it is about to or never does
                opened.append(os.open(write_lock, os.O_WRONLY | os.O_NONBLOCK))
            return bool(opened)

        wait_until(open_gate)
        (file,) = opened
        os.write(file, b"go\n")
        os.close(file)
        assert committed(one_queue) in ({}, {0: 0})

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [[], ["--orderly"], ["-e"], ["-o", "jsonl"]])
    def test_output_without_a_reader_is_not_acknowledged(self, ten, options):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            result = call("consume", "t", "-g", "g", *options, stdout=writing)
        finally:
            os.close(writing)
        assert (result.code, result.err) == (141, "")
        assert sum(committed(ten).values()) == 0
        assert sorted(consume("-e")) == bodies(0, 10)
        assert stored("%RETRY%g") == []

    @pytest.mark.slow
    def test_a_full_disk_under_stdout_acknowledges_nothing(self, one_queue):
        with Path("/dev/full").open("wb") as full:
            result = call("consume", "t", "-g", "g", "-e", stdout=full)
        assert result.code == 1
        assert result.err == "rmqctl: standard output: No space left on device\n"
        assert consume("-e") == bodies(0, 10)

    @pytest.mark.slow
    def test_progress_that_is_moved_reaches_a_running_consumer(self, one_queue):
        with running() as process:
            assert read_lines(process, 10) == bodies(0, 10)
            with EmbeddedBroker.open(one_queue) as broker:
                broker.progress.move("g", {("t", 0): 8})
            assert read_lines(process, 2) == bodies(8, 10)
            assert end(process) == 143
        assert consume("-e") == []


@pytest.mark.parametrize("options", [["-g", "g"], ["-g", "g", "-e"], []])
def test_a_topic_that_may_not_be_read_is_refused_before_anything_is_made(store, options):
    run("topic", "create", "t", "--queues", 2, "--perm", 2)
    send("x")
    before = run("topic", "list").lines, run("group", "list").lines
    result = run("consume", "t", *options)
    assert result.code == 7
    assert "topic t may not be read: its perm is 2" in result.err
    assert (run("topic", "list").lines, run("group", "list").lines) == before
