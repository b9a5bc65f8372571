"""``broker start`` and ``status``, and the process that runs the timed services."""

import resource
import signal
import time
from contextlib import contextmanager

import pytest

from broker.api.transactions import LocalTransactionState
from broker.embedded.broker import EmbeddedBroker
from client.producer.transaction_producer import TransactionProducer
from storage.config import SMALL_STORE
from storage.format.encode import MessageInner
from storage.format.message import SCHEDULE_TOPIC, Message
from storage.store import MessageStore
from tests.support.cli import run, start

MEANWHILE = 30
HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))


@contextmanager
def running(*args):
    with start(*args) as process:
        try:
            yield process
        finally:
            process.kill()


def status():
    return run("broker", "status", "-o", "json").json()


def wait_until(condition):
    deadline = time.monotonic() + MEANWHILE
    while not condition():
        assert time.monotonic() < deadline, "it never came true"


def delivered(topic="later"):
    result = run("consume", topic, "-e")
    return result.lines if result.code == 0 else []


def send_later(body):
    run("produce", "later", "--delay-level", 1, "-q", stdin=body)


@pytest.fixture
def foreign(store):
    """A store that rmqctl did not make, as far as its files show."""
    (store / "rmqctl" / "created").unlink()
    return store


@pytest.mark.slow
@pytest.mark.feature(127)
def test_no_service_runs_in_a_store_at_rest(store):
    send_later(b"one\ntwo\n")
    now = status()
    assert now["services"] == {
        name: {"running": False, "pid": None}
        for name in ("delay_delivery", "transaction_checks", "cleaning")
    }
    (level,) = now["delay_levels"]
    assert (level["level"], level["delay_ms"], level["waiting"]) == (1, 1000, 2)
    assert (
        level["due_timestamp"]
        > run("consume", "SCHEDULE_TOPIC_XXXX", "-e", "-o", "json").json()[0]["store_timestamp"]
    )
    assert (now["writers"], now["clients"], now["created_here"]) == ([], [], True)
    assert now["half_messages"]["pending"] == 0
    assert delivered() == []


@pytest.mark.slow
@pytest.mark.feature(6, 127)
def test_services_in_the_foreground_deliver_until_a_signal_ends_them(store):
    with running("broker", "start") as first:
        assert b"this process runs delay delivery" in first.stderr.readline()
        send_later(b"one\n")
        wait_until(lambda: delivered() == ["one"])
        assert status()["services"]["delay_delivery"] == {"running": True, "pid": first.pid}
        with running("broker", "start") as second:
            assert f"process {first.pid} runs" in second.stderr.readline().decode()
            first.send_signal(signal.SIGINT)
            assert first.wait(MEANWHILE) == 130
            assert b"this process runs" in second.stderr.readline()
            second.send_signal(signal.SIGTERM)
            assert second.wait(MEANWHILE) == 143
    # All of it was written down: nothing is delivered twice.
    assert [row["waiting"] for row in status()["delay_levels"]] == [0]


@pytest.mark.slow
def test_services_end_with_an_error_when_their_store_refuses_writes(store):
    with running("broker", "start") as first:
        assert b"this process runs delay delivery" in first.stderr.readline()
        resource.prlimit(first.pid, resource.RLIMIT_FSIZE, (0, 0))  # no file can grow
        send_later(b"one\n")
        assert first.wait(MEANWHILE) == 5
        assert b"cannot be written: File too large" in first.stderr.read()
    with running("broker", "start"):
        wait_until(lambda: delivered() == ["one"])


@pytest.mark.slow
def test_who_reads_a_pipe_delivers_by_the_way(store):
    with running("produce", "now") as producer:
        producer.stdin.write(b"hello\n")
        producer.stdin.flush()
        send_later(b"one\n")
        wait_until(lambda: delivered() == ["one"])
        producer.stdin.close()
        assert producer.wait(MEANWHILE) == 0


@pytest.mark.slow
def test_nothing_is_delivered_by_the_way_in_a_store_of_others(foreign):
    with running("produce", "now") as producer:
        producer.stdin.write(b"hello\n")
        producer.stdin.flush()
        send_later(b"one\n")
        wait_until(lambda: status()["delay_levels"][0]["due_timestamp"] < time.time() * 1000)
        assert status()["services"]["delay_delivery"]["running"] is False
        assert delivered() == []
        with running("broker", "start"):  # that is asking for it
            wait_until(lambda: delivered() == ["one"])
        producer.stdin.close()
        producer.wait(MEANWHILE)


class Undecided:
    """Commits messages of one body, and does not know about others."""

    def execute_local_transaction(self, message, argument):
        state = LocalTransactionState
        return state.COMMIT_MESSAGE if message.body == b"done" else state.UNKNOW

    def check_local_transaction(self, message):
        return LocalTransactionState.UNKNOW


def test_half_messages_that_were_not_ended_are_pending(store):
    with EmbeddedBroker.open(store) as broker:
        producer = TransactionProducer("p", Undecided(), brokers=[broker])
        producer.start()
        for body in (b"open", b"done", b"open too"):
            producer.send_message_in_transaction(Message("t", body), None)
        (client,) = status()["clients"]
        assert client["producer_groups"] == ["p"]
        producer.shutdown()
    half = status()["half_messages"]
    assert (half["pending"], half["max_offset"]) == (2, 3)
    assert half["oldest_timestamp"] is not None
    assert delivered("t") == ["done"]


def test_services_have_no_dry_run(store):
    result = run("broker", "start", "-n", "--timeout", "2s")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "so it has no dry run; 'rmqctl broker status' changes nothing" in result.err


def test_a_store_that_is_not_there(own_home):
    for command in ("start", "status"):
        result = run("broker", command, "-S", "nowhere")
        assert (result.code, result.err.count("\n")) == (3, 1)


@pytest.mark.parametrize("offset", [-9_223_372_036_854_775_807, -1])
def test_progress_below_0_of_the_checks_is_none(store, offset):
    with EmbeddedBroker.open(store) as broker:
        producer = TransactionProducer("p", Undecided(), brokers=[broker])
        producer.start()
        producer.send_message_in_transaction(Message("T", b"open"), None)
        producer.shutdown()
    key = "RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS"
    for name in ("offsets.log", "offsets.json"):
        (store / "rmqctl" / name).unlink(missing_ok=True)
    path = store / "config/consumerOffset.json"
    path.write_text(f'{{"offsetTable":{{"{key}":{{0:{offset}}}}}}}')
    half = status()["half_messages"]
    assert (half["pending"], half["checked_offset"], half["max_offset"]) == (1, 0, 1)


def test_a_delay_level_of_a_huge_number_is_one_row(tmp_path, monkeypatch):
    root = tmp_path / "delayed"
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    MessageStore.create(root, SMALL_STORE)
    with MessageStore.open(root) as opened:
        opened.put_message(MessageInner(SCHEDULE_TOPIC, 2_147_483_646, b"x", b"", 1, HOST, HOST))
    levels = [level["level"] for level in status()["delay_levels"]]
    assert levels == [2_147_483_647]
