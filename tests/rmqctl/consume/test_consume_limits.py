"""Limits of ``consume``: what it prints, what a group may pass, and what is refused before."""

import os
import socket
from contextlib import contextmanager

import pytest

from broker.api.offsets import ConsumeFromWhere
from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from rmqctl.cli.progress import Progress
from rmqctl.consume.bounded_progress import LimitedConsumer
from rmqctl.consume.listener import MemberListener
from rmqctl.consume.member import MemberRun
from rmqctl.consume.quota import Quota
from storage.format.message import Message
from tests.support.cli import run, start

MEANWHILE = 30
"""Seconds within which a process gets somewhere by itself."""


def send(*bodies, options=()):
    data = b"".join(f"{body}\n".encode() for body in bodies)
    result = run("produce", "t", "-q", *options, stdin=data)
    assert result.code == 0, result.err


def consume(*options):
    result = run("consume", "t", *options)
    assert result.code == int("false" in options), result.err  # 1: all programs failed
    return result.lines


@contextmanager
def running(*options, **streams):
    """A consumer in a process of its own; killed if the test ends before it."""
    with start("consume", "t", *options, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def committed(store, group="g"):
    """The group's committed offset of each queue."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        return broker.consumer_offsets().get((group, "t"), {})


@pytest.fixture
def hundred(store):
    """The numbers from 0 to 99 in one queue."""
    run("topic", "create", "t", "--queues", 1)
    send(*range(100))
    return store


@pytest.fixture
def seven_tagged(store):
    """Messages a, b, a, b, c, a, b in one queue, each with its body as its tag."""
    run("topic", "create", "t", "--queues", 1)
    for tag in "ababcab":
        send(tag, options=["--tag", tag])
    return store


@pytest.fixture
def divided(store):
    """The numbers from 0 to 99, twenty in each of five queues."""
    run("topic", "create", "t", "--queues", 5)
    send(*range(100))
    return store


class TestCountOfFailures:
    """What failed is sent back after its call is over; progress waits for it."""

    @pytest.mark.slow
    @pytest.mark.parametrize("code", [1, 0])
    def test_all_that_were_begun_are_passed_and_no_more(self, hundred, tmp_path, code):
        for number in range(6):
            group, begun = f"g{number}", tmp_path / f"begun-{number}"
            program = f"sh -c 'echo $RMQ_QUEUE_OFFSET >> {begun}; exit {code}'"
            options = ["-c", 10, "--exec", program, "--threads", 4, "--delay-level", 9, "-q"]
            run("consume", "t", "-g", group, *options)
            self.check_passed({int(line) for line in begun.read_text().split()}, hundred, group)

    @pytest.mark.slow
    @pytest.mark.parametrize("threads", [1, 4])
    def test_what_fails_at_once_is_sent_back_before_its_queue_is_given_up(self, hundred, threads):
        """It waits for more of its kind, in a thread that waits for it."""
        begun: set[int] = set()

        def fail(messages):
            begun.update(message.queue_offset for message in messages)
            raise ValueError("at once")

        for number in range(3):
            group = f"g{number}"
            begun.clear()
            with EmbeddedBroker.open(hundred) as broker:
                first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
                config = ConsumerConfig(
                    consume_from_where=first,
                    consume_thread_min=threads,
                    await_termination_millis_when_shutdown=10_000,  # as the command has it
                )
                consumer = LimitedConsumer(group, brokers=[broker], config=config)
                consumer.subscribe("t", "*")
                consumer.quota = Quota(10, None)
                listening = MemberListener(consumer, fail, consumer.quota, exact=threads == 1)
                consumer.register_message_listener(listening.consume)
                run_of = MemberRun(consumer, listening, watches_reader=False)
                run_of.run(Progress("consume", "messages", "none"))
            self.check_passed(begun, hundred, group)

    @staticmethod
    def check_passed(begun, store, group):
        """Of several threads one may begin a message before another begins the one before it."""
        assert len(begun) == 10
        assert committed(store, group) == {0: min(set(range(11)) - begun)}, (begun, group)


class TestCountOfAGroup:
    """``-c`` counts what is printed; what is passed before the last one is acknowledged."""

    @pytest.mark.slow
    @pytest.mark.parametrize("limit", ["-c", "--limit"])
    @pytest.mark.parametrize("options", [[], ["--orderly"], ["--threads", 1]])
    def test_what_a_filter_leaves_out_does_not_count(self, hundred, limit, options):
        fifties = ["-g", "g", "--regex", "^5.$", *options]
        assert consume(*fifties, limit, 2) == ["50", "51"]
        assert committed(hundred) == {0: 52}
        assert consume(*fifties, limit, 3) == ["52", "53", "54"]
        assert committed(hundred) == {0: 55}
        assert consume("-g", "g", "-c", 1) == ["55"]

    @pytest.mark.parametrize(
        "options",
        [
            [],
            ["--orderly"],
            ["--threads", 3],
            ["--exec", "true"],
            ["--exec", "true", "--threads", 3],
            ["--exec", "false"],
        ],
    )
    @pytest.mark.parametrize(
        ("count", "offset"),
        [
            (2, 4),
            pytest.param(1, 2, marks=pytest.mark.long),
            pytest.param(3, 7, marks=pytest.mark.long),
        ],
    )
    @pytest.mark.slow
    def test_what_a_tag_leaves_out_behind_the_last_one_is_not_passed(
        self, seven_tagged, options, count, offset
    ):
        """The broker leaves it out, so it is not among what the member has pulled."""
        consume("-g", "g", "--tag", "b", "-c", count, *options)
        assert committed(seven_tagged) == {0: offset}
        assert consume("-g", "g", "-e") == list("ababcab"[offset:])

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [[], ["--orderly"]])
    @pytest.mark.parametrize("tag", ["b", "c"])
    @pytest.mark.parametrize(
        ("end", "rest"),
        [(5, "ab"), pytest.param(6, "b", marks=pytest.mark.long), (7, "")],
    )
    def test_an_end_is_passed_neither(self, seven_tagged, tag, end, rest, options):
        consume("-g", "g", "--tag", tag, "--offset", f":{end}", *options)
        assert committed(seven_tagged) == {0: end}
        assert consume("-g", "g", "-e") == list(rest)

    def test_none_is_none(self, hundred):
        assert consume("-g", "g", "--regex", "^5.$", "-c", 0) == []
        assert committed(hundred) in ({}, {0: 0})

    def test_at_the_end_it_stops_with_fewer(self, hundred):
        assert consume("-g", "g", "--regex", "^9[89]$", "-c", 3, "-e") == ["98", "99"]
        assert committed(hundred) == {0: 100}

    @pytest.mark.slow
    def test_many_threads_share_it(self, divided):
        """One message at a time in each queue: none is passed after the last that counts."""
        wanted = ["-g", "g", "--regex", "[05]$"]
        printed = consume(*wanted, "--threads", 3, "--orderly", "-c", 7)
        passed = sum(committed(divided).values())
        rest = consume("-g", "g", "-e")
        assert (len(printed), len(rest)) == (7, 100 - passed)
        assert sorted(printed + [body for body in rest if body[-1] in "05"], key=int) == [
            str(i) for i in range(0, 100, 5)
        ]

    def test_a_program_runs_as_often(self, hundred, tmp_path):
        script = f"sh -c 'cat >> {tmp_path}/got; echo >> {tmp_path}/got'"
        consume("-g", "g", "--body", "7", "-c", 3, "--exec", script)
        assert (tmp_path / "got").read_text().split() == ["7", "17", "27"]
        assert committed(hundred) == {0: 28}

    @pytest.mark.slow
    def test_a_body_that_can_not_be_read_is_a_failure_of_its_message(self, hundred):
        with EmbeddedBroker.open(hundred) as broker:
            broker.send(Message("t", b"no zlib"), 0, SendOptions(sys_flag=1))
        result = run("consume", "t", "-g", "g", "-e", "--regex", "^99$", "-c", 2)
        assert (result.code, result.lines) == (8, ["99"])
        assert "(topic t, queue 0, offset 100): the compressed body is damaged" in result.err
        assert committed(hundred) == {0: 101}, "it is sent back, and comes again"


class TestLimitAndCount:
    """Without a group ``-c`` and ``--limit`` are the same."""

    @pytest.mark.slow
    @pytest.mark.parametrize("limit", ["-c", "--limit"])
    @pytest.mark.parametrize("group", [[], ["-g", "g", "--no-commit"]])
    def test_both_count_the_rows_that_are_shown(self, hundred, limit, group):
        shown = ["-e", "--columns", "body", "--no-headers", *group]
        assert consume(*shown, "--where", "queue_offset > 97", limit, 1) == ["98"]
        assert consume(*shown, "--sort", "-queue_offset", limit, 2) == ["99", "98"]
        assert consume(*shown, "--where", "queue_offset > 97", limit, 5) == ["98", "99"]
        assert consume(*shown, "--where", "queue_offset > 97", limit, 0) == []

    def test_the_smaller_one_counts(self, hundred):
        shown = ["-e", "--columns", "body", "--no-headers", "--where", "queue_offset > 90"]
        assert consume(*shown, "-c", 1, "--limit", 3) == consume(*shown, "-c", 3, "--limit", 1)
        assert consume(*shown, "-c", 1, "--limit", 3) == ["91"]

    @pytest.mark.parametrize("limit", ["-c", "--limit"])
    def test_it_stops_at_the_end_as_without_conditions(self, hundred, limit):
        shown = ["--columns", "body", "--no-headers", "--where", "queue_offset > 98"]
        assert consume(*shown, limit, 5, "--timeout", "20s") == ["99"]


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (["-e", "--sort", "body"], "a group acknowledges as it reads: add --no-commit"),
            (["-c", "2", "--sort", "body"], "add --no-commit"),
            (["-e", "--where", "queue_offset > 5"], "acknowledge rows that --where leaves out"),
            (["-c", "2", "--where", "queue_offset > 5"], "--tag, --regex"),
            (["-e", "-n"], "so it has no dry run; --no-commit reads only"),
            (["-e", "--dry-run", "--exec", "true"], "so it has no dry run"),
            (["-e", "--body", "jsno"], "did you mean 'json'? --regex finds a text"),
            (["-e", "--body", "HEX"], "did you mean 'hex'?"),
        ],
    )
    def test_what_a_group_would_acknowledge_unseen(self, hundred, options, reason):
        result = run("consume", "t", "-g", "g", *options)
        assert (result.code, result.raw) == (2, b""), result.err
        assert reason in result.err
        assert result.err.count("\n") == 1
        assert committed(hundred) == {}

    @pytest.mark.parametrize("group", [[], ["-g", "g", "--no-commit"]])
    def test_who_only_looks_may_do_so_in_any_way(self, hundred, group):
        shown = ["--columns", "body", "--no-headers", "-e", *group]
        assert consume(*shown, "--sort", "-queue_offset", "-n")[0] == "99"
        assert consume(*shown, "--where", "queue_offset > 98") == ["99"]
        assert consume("-e", "--body", "jsno", *group) == []
        assert committed(hundred) == {}

    def test_a_text_that_is_far_from_a_form_is_looked_for(self, hundred):
        assert consume("-g", "g", "-e", "--body", "42") == ["42"]

    @pytest.mark.parametrize(
        "options", [["-c", "200"], ["--limit", "200"], ["--last", "5", "-F"], ["--offset", "5:"]]
    )
    @pytest.mark.parametrize("group", [[], ["-g", "g", "--no-commit"]])
    def test_sorting_needs_an_end(self, hundred, options, group):
        if group and "--last" in options:
            options = ["-F"]
        result = run("consume", "t", "--sort", "body", *options, *group, "--timeout", "20s")
        assert (result.code, result.raw) == (2, b""), result.err
        assert "it needs an end, such as --exit" in result.err

    @pytest.mark.parametrize(
        "options", [["-e"], ["--to", "+1h"], ["--offset", ":100"], ["--last", "100"]]
    )
    def test_sorting_is_content_with_any_end(self, hundred, options):
        shown = ["--columns", "body", "--no-headers", "--sort", "-queue_offset"]
        assert consume(*shown, *options)[:2] == ["99", "98"]

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (
                ["-f", "%s", "--body", "hex"],
                "--body hex and --format exclude each other: write %s{hex}",
            ),
            (["-f", "%s", "--body", "none"], "--body none and --format exclude each other"),
            (["-f", "%s", "-D", ","], "--delimiter is for bodies alone, not with --format"),
            (["-o", "json", "-D", ","], "--delimiter is for bodies alone, not in rows"),
            (["--with-meta", "-D", r"\n"], "--delimiter is for bodies alone, not in rows"),
            (["--columns", "body", "-D", ","], "--delimiter is for bodies alone"),
            (["-g", "g", "--exec", "true", "--body", "hex"], "--exec and --body hex exclude"),
            (["-g", "g", "--exec", "true", "-D", ","], "--exec and --delimiter exclude"),
        ],
    )
    def test_what_would_be_ignored(self, hundred, options, reason):
        result = run("consume", "t", "-e", *options)
        assert (result.code, result.raw) == (2, b""), result.err
        assert reason in result.err
        assert result.err.count("\n") == 1

    @pytest.mark.slow
    def test_what_is_looked_for_goes_with_every_way_of_printing(self, hundred):
        assert consume("-e", "--body", "42", "-f", r"<%s>\n") == ["<42>"]
        assert consume("-c", 1, "--body", "text", "-f", r"<%s>\n") == ["<0>"]
        assert consume("-e", "-o", "plain", "-D", "", "--body", "42") == ["42"]
        assert consume("-e", "-o", "jsonl", "--columns", "body", "--body", "text", "-c", 1) == [
            '{"body":"0"}'
        ]


@pytest.mark.slow
def test_an_offset_id_is_found_in_either_spelling(hundred):
    (row,) = run("consume", "t", "-c", 1, "--offset", 42, "-o", "json").json()
    for found in (row["msg_id"], row["offset_msg_id"]):
        assert consume("-e", "--id", found) == ["42"]
        assert consume("-e", "--id", found.lower()) == ["42"]


def test_an_id_that_the_sender_chose_is_found_as_it_is(hundred):
    with EmbeddedBroker.open(hundred) as broker:
        broker.send(Message("t", b"mine", properties={"UNIQ_KEY": "my-own"}), 0)
    assert consume("-e", "--id", "my-own") == ["mine"]
    assert consume("-e", "--id", "MY-OWN") == []


class TestReaderThatIsGone:
    """Nothing is written while nothing comes, so no write shows that the reader is gone."""

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [[], ["-F", "-o", "jsonl"], ["-g", "g"]])
    def test_a_pipe(self, hundred, options):
        reading, writing = os.pipe()
        with running("--offset", "99", *options, stdout=writing) as process:
            os.close(writing)
            assert b"99" in os.read(reading, 1 << 16)
            os.close(reading)
            assert process.wait(MEANWHILE) == 141
            assert process.stderr.read() == b""
        if "-g" in options:
            assert committed(hundred) == {0: 100}, "what the reader had is acknowledged"

    @pytest.mark.slow
    def test_a_socket(self, hundred):
        ours, its = socket.socketpair()
        with running("--offset", "99", stdout=its) as process:
            its.close()
            assert ours.recv(1 << 16) == b"99\n"
            ours.close()
            assert process.wait(MEANWHILE) == 141

    @pytest.mark.slow
    def test_what_has_an_end_ends_as_ever(self, hundred):
        with running("-e", "--regex", "nothing like it") as process:
            process.stdout.close()
            assert process.wait(MEANWHILE) == 0
