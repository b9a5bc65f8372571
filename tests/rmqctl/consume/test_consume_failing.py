"""``consume --exec``: what becomes of messages that fail, and options that would say nothing."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.parse.templates import OutputTemplate
from storage.configs.subscription_groups import SubscriptionGroupConfig
from tests.support.cli import call, run


@pytest.fixture
def three(store):
    """Three messages in one queue."""
    run("topic", "create", "t", "--queues", 1)
    assert run("produce", "t", "-q", stdin=b"0\n1\n2\n").code == 0
    return store


def consume(*options):
    return call("consume", "t", "-g", "g", "-e", *options)


class TestDropped:
    """Partly done (8) where no consumer will ever get them, with the reason."""

    @pytest.mark.slow
    def test_a_broadcast_drops_them(self, three, tmp_path):
        folder = ["--set", f"localOffsetStoreDir={tmp_path}"]
        options = ["--broadcast", "--from-where", "first", *folder]
        result = consume(*options, "--exec", "sh -c 'test $RMQ_QUEUE_OFFSET = 1'")
        assert result.code == 8
        assert result.err == (
            "rmqctl: 2 messages of t failed and were dropped: broadcasting has no retries\n"
        )
        assert consume(*options, "--exec", "true").code == 0, "they do not come again"

    @pytest.mark.slow
    def test_a_group_without_retry_queues_drops_them(self, three):
        with EmbeddedBroker.open(three) as broker:
            broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=0))
        result = consume("--exec", "false")
        assert result.code == 8
        assert result.err == (
            "rmqctl: 3 messages of t failed and were dropped: group g has no retry queue; "
            "'rmqctl group alter g --retry-queue-nums 1' adds one\n"
        )
        assert run("consume", "t", "-g", "g", "-e").lines == []

    @pytest.mark.slow
    def test_the_retry_queue_that_is_added_then_gives_them_again(self, three):
        with EmbeddedBroker.open(three) as broker:
            broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=0))
        assert consume("--exec", "false").code == 8
        assert run("group", "alter", "g", "--retry-queue-nums", 1, "--yes").code == 0
        run("produce", "t", "-q", stdin=b"later\n")
        assert consume("--exec", "false").code == 1
        assert run("retry", "now", "-g", "g", "--all", "--yes").code == 0
        (row,) = run("consume", "t", "-g", "g", "-e", "-o", "json").json()
        assert row["body"] == "later"

    @pytest.mark.slow
    def test_others_come_again(self, three):
        result = consume("--exec", "false")
        assert (result.code, result.err) == (
            1,
            "rmqctl: 3 of 3 messages failed; they will be retried, or are dead letters\n",
        )

    @pytest.mark.slow
    def test_in_a_broadcast_in_order_the_queue_waits(self, three, tmp_path):
        tried = tmp_path / "tried"
        script = f"sh -c 'echo >> {tried}; test $(wc -l < {tried}) -gt 2'"
        options = ["--broadcast", "--from-where", "first", "--orderly"]
        settings = ["localOffsetStoreDir=" + str(tmp_path), "suspendCurrentQueueTimeMillis=10"]
        options += [word for setting in settings for word in ("--set", setting)]
        result = consume(*options, "--exec", script)
        assert (result.code, result.err.count("dropped")) == (0, 0), result.err
        assert tried.read_text().count("\n") == 5


class TestInOrder:
    """Exit codes count messages, and attempts only where the message succeeds later."""

    @staticmethod
    def consume(*options):
        settings = ("--set", "suspendCurrentQueueTimeMillis=10")
        return consume("--orderly", "--from-where", "first", *settings, *options)

    @pytest.mark.slow
    @pytest.mark.parametrize("retries", [0, 1])
    def test_all_failed_where_the_retry_limit_lets_the_queue_go_on(self, three, retries):
        result = self.consume("--exec", "false", "--max-reconsume-times", retries, "-q")
        assert result.code == 1, result.err
        assert result.err.endswith(
            "rmqctl: 3 of 3 messages failed; they will be retried, or are dead letters\n"
        )

    @pytest.mark.slow
    def test_some_failed(self, three):
        command = "sh -c 'test $RMQ_QUEUE_OFFSET = 1'"
        result = self.consume("--exec", command, "--max-reconsume-times", 1, "-q")
        assert result.code == 8, result.err
        assert "2 of 3 messages failed; they will be retried" in result.err

    @pytest.mark.slow
    def test_failed_attempts_of_messages_that_succeed_later_are_said(self, three, tmp_path):
        tried = tmp_path / "tried"
        script = f"sh -c 'echo >> {tried}; test $(wc -l < {tried}) -gt 2'"
        result = self.consume("--exec", script)
        assert (result.code, result.err.count("2 attempts failed; an orderly queue waits")) == (
            0,
            1,
        ), result.err

    @pytest.mark.slow
    def test_a_message_that_the_queue_still_waits_at_has_failed(self, three):
        result = self.consume("--exec", "false", "-c", 2)
        assert result.code == 1, result.err
        assert result.err.endswith("1 of 1 message failed; its queue waits at it\n")
        limited = self.consume("--exec", "false", "-c", 2, "--max-reconsume-times", 9)
        assert "1 of 1 message failed; it will be retried" in limited.err


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (
                ["--orderly", "--delay-level", 3],
                "--delay-level has no effect with --orderly: the queue waits at a message that "
                "fails (--set suspendCurrentQueueTimeMillis=MS)",
            ),
            (
                ["--orderly", "--delay-level", 0],
                "--delay-level has no effect with --orderly",
            ),
            (
                ["--broadcast", "--delay-level", -1],
                "--delay-level has no effect with --broadcast: broadcasting has no "
                "retries, failed messages are dropped",
            ),
            (
                ["--broadcast", "--max-reconsume-times", 0],
                "--max-reconsume-times has no effect with --broadcast: broadcasting has no retries",
            ),
        ],
    )
    def test_what_would_be_ignored(self, three, options, reason):
        result = run("consume", "t", "-g", "g", "-e", *options, "--exec", "true")
        assert (result.code, result.raw) == (2, b"")
        assert reason in result.err
        assert result.err.count("\n") == 1

    @pytest.mark.slow
    def test_in_order_attempts_are_counted_in_a_broadcast_too(self, three, tmp_path):
        options = ["--broadcast", "--orderly", "--max-reconsume-times", 1]
        options += ["--set", f"localOffsetStoreDir={tmp_path}"]
        assert consume(*options, "--exec", "true").code == 0


class TestLongNames:
    """``%RETRY%`` and the group have to be a topic's name, so 120 characters are the most."""

    def test_a_group_that_can_have_no_retry_topic_is_refused_and_not_made(self, three):
        group = "g" * 121
        result = run("consume", "t", "-g", group, "-e", "--from-where", "first")
        assert (result.code, result.raw) == (2, b"")
        assert f"group '{'g' * 40}...' has 121 characters, allowed are 120 " in result.err
        with EmbeddedBroker.open(three, read_only=True) as broker:
            assert group not in broker.groups()
            assert broker.consumer_offsets(group) == {}

    def test_one_less_consumes(self, three):
        assert run("consume", "t", "-g", "g" * 120, "-e").lines == ["0", "1", "2"]

    def test_who_only_looks_needs_no_retries(self, three):
        assert run("consume", "t", "-g", "g" * 255, "-e", "--no-commit").lines == ["0", "1", "2"]


def test_a_message_that_cannot_be_printed_is_not_sent_back(three, monkeypatch):
    """An error of the program is no failure of the messages: the group stays before them."""

    def fails(self, message):
        raise RuntimeError(message.queue_offset)

    with monkeypatch.context() as patched:
        patched.setattr(OutputTemplate, "format", fails)
        result = run("consume", "t", "-g", "g", "-e", "-f", r"%s\n")
    assert (result.code, result.lines) == (1, []), result.err
    assert "internal error: RuntimeError: 0" in result.err
    rows = run("consume", "t", "-g", "g", "-e", "-o", "json").json()
    assert [(row["topic"], row["body"]) for row in rows] == [("t", "0"), ("t", "1"), ("t", "2")]


@pytest.mark.parametrize("words", [["consume", "t", "-e", "-f"], ["produce", "t", "--template"]])
def test_a_form_of_dates_that_is_no_text_is_a_wrong_command_line(three, words):
    result = run(*words, "%d{%H\udcff}")
    assert result.code == 2, result.err
    assert "'%H\\udcff' is no format of a date" in result.err
