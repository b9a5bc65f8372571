"""Messages that depend on a local transaction."""

from __future__ import annotations

import threading

import pytest

from broker.api.pull import PullRequest
from broker.api.send import SendStatus
from broker.api.transactions import CheckTransactionState, LocalTransactionState
from broker.errors import BrokerSystemError
from client.errors import SendFailedError
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from client.producer.transaction_producer import TransactionProducer
from client.runtime.client_config import ClientConfig
from client.trace.trace import TraceType, query_traces
from storage.configs.topics import TopicConfig
from storage.format.message import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, Message, MessageExt
from tests.support.consumers import eventually
from tests.support.failing_broker import DOWN, STATUS, FailingBroker

COMMIT = LocalTransactionState.COMMIT_MESSAGE
ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE
UNKNOW = LocalTransactionState.UNKNOW
DEADLINE_S = 20


class Listener:
    """Returns the given answer."""

    def __init__(self, state=UNKNOW, check=UNKNOW, meanwhile=lambda: None):
        self.state = state
        self.meanwhile = meanwhile
        self.check = check
        self.executed = []
        self.checked = []
        self.was_checked = threading.Semaphore(0)

    def execute_local_transaction(self, message, arg):
        self.executed.append((message, arg))
        self.meanwhile()
        if isinstance(self.state, Exception):
            raise self.state
        return self.state

    def check_local_transaction(self, message):
        self.checked.append(message)
        self.was_checked.release()
        if isinstance(self.check, BaseException):
            raise self.check
        return self.check


@pytest.fixture
def failing(broker, clock):
    broker.update_topic(TopicConfig("T", 1, 1))
    return FailingBroker(broker, clock)


@pytest.fixture
def produce(manager, failing):
    started: list[TransactionProducer] = []

    def producer(listener, group="group", **settings):
        config = ProducerConfig(**settings)
        client = ClientConfig(instance_name=f"client{len(started)}")
        started.append(
            TransactionProducer(
                group,
                listener,
                brokers=[failing],
                config=config,
                client_config=client,
                manager=manager,
            )
        )
        started[-1].start()
        return started[-1]

    yield producer
    for it in started:
        it.shutdown()


def visible(broker, topic="T"):
    return broker.pull(PullRequest("reader", topic, 0, 0)).messages


def halves(broker):
    return broker.max_offset(TRANS_HALF_TOPIC, 0)


@pytest.mark.feature(7)
def test_a_message_is_seen_when_its_transaction_is_committed(produce, broker):
    seen_meanwhile: list[object] = []
    listener = Listener(COMMIT, meanwhile=lambda: seen_meanwhile.extend(visible(broker)))
    message = Message("T", b"x", keys="k", delay_time_level=3)
    result = produce(listener).send_message_in_transaction(message, "arg")
    assert result.local_transaction_state is COMMIT
    assert result.transaction_id == result.send_result.msg_id
    assert listener.executed == [(message, "arg")]
    assert seen_meanwhile == []
    [stored] = visible(broker)
    assert (stored.body, stored.keys, stored.msg_id) == (b"x", ("k",), result.transaction_id)
    assert stored.sys_flag & 0xC == 0x8
    assert stored.get_property("TRAN_MSG") == "true"
    assert stored.get_property("PGROUP") == "group"
    assert stored.get_property("DELAY") is None, "a transaction can not be delayed"


@pytest.mark.feature(7)
def test_a_message_is_never_seen_when_its_transaction_is_rolled_back(produce, broker):
    result = produce(Listener(ROLLBACK)).send_message_in_transaction(Message("T", b"x"))
    assert result.local_transaction_state is ROLLBACK
    assert visible(broker) == []
    assert (halves(broker), broker.max_offset(TRANS_OP_HALF_TOPIC, 0)) == (1, 1)


@pytest.mark.parametrize("answer", [None, UNKNOW, ValueError("the database is down")])
def test_an_open_answer_leaves_the_half_message_to_the_broker(produce, broker, answer):
    result = produce(Listener(answer)).send_message_in_transaction(Message("T", b"x"))
    assert result.local_transaction_state is UNKNOW
    assert visible(broker) == []
    assert (halves(broker), broker.max_offset(TRANS_OP_HALF_TOPIC, 0)) == (1, 0)


@pytest.mark.parametrize("answer", ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"])
def test_the_name_of_a_state_counts_as_the_state(produce, broker, clock, answer):
    listener = Listener(answer, check="COMMIT_MESSAGE")
    producer = produce(listener)
    result = producer.send_message_in_transaction(Message("T", b"x"))
    assert result.local_transaction_state is LocalTransactionState(answer)
    assert len(visible(broker)) == (answer == COMMIT)
    assert broker.max_offset(TRANS_OP_HALF_TOPIC, 0) == (answer != UNKNOW)
    clock.advance(60_000)
    broker.transaction_checks.check()
    eventually(lambda: broker.max_offset(TRANS_OP_HALF_TOPIC, 0) == 1)
    assert len(visible(broker)) == (answer != ROLLBACK)


@pytest.mark.parametrize("answer", [5, True, "commit", [], Message("T", b"y")])
def test_an_answer_that_is_no_state_is_told_and_leaves_the_message_to_the_broker(
    produce, broker, clock, caplog, answer
):
    listener = Listener(answer, check=answer)
    result = produce(listener).send_message_in_transaction(Message("T", b"x"))
    assert result.local_transaction_state is UNKNOW
    assert (visible(broker), broker.max_offset(TRANS_OP_HALF_TOPIC, 0)) == ([], 0)
    said = f"a transaction listener gave {answer!r}, which is none of COMMIT_MESSAGE, "
    [told] = [it for it in caplog.messages if it.startswith(said)]
    assert told.endswith(f"msg_id={result.transaction_id}")
    clock.advance(60_000)
    broker.transaction_checks.check()
    eventually(lambda: len([it for it in caplog.messages if it.startswith(said)]) == 2)
    assert (visible(broker), broker.max_offset(TRANS_OP_HALF_TOPIC, 0)) == ([], 0)


def test_an_exit_in_a_check_ends_no_thread(produce, broker, clock):
    listener = Listener(UNKNOW, check=SystemExit(3))
    produce(listener, check_thread_pool_size=1).send_message_in_transaction(Message("T", b"x"))
    for check in (listener.check, COMMIT):
        listener.check = check
        clock.advance(60_000)
        broker.transaction_checks.check()
        assert listener.was_checked.acquire(timeout=DEADLINE_S)
    eventually(lambda: visible(broker))


def test_without_a_half_message_there_is_no_local_transaction(produce, failing):
    listener = Listener(COMMIT)
    failing.always("send", DOWN)
    with pytest.raises(SendFailedError):
        produce(listener).send_message_in_transaction(Message("T", b"x"))
    assert listener.executed == []


def test_a_half_message_that_is_not_quite_stored_is_rolled_back(produce, failing):
    listener = Listener(COMMIT)
    failing.plan("send", STATUS(SendStatus.FLUSH_DISK_TIMEOUT))
    result = produce(listener).send_message_in_transaction(Message("T", b"x"))
    assert result.local_transaction_state is ROLLBACK
    assert listener.executed == []
    assert failing.broker.max_offset(TRANS_OP_HALF_TOPIC, 0) == 1


@pytest.mark.parametrize("error", [DOWN, BrokerSystemError("the half message is missing")])
@pytest.mark.parametrize("answer", [COMMIT, ROLLBACK])
def test_an_end_that_gets_lost_is_asked_for(produce, failing, broker, clock, error, answer):
    failing.plan("end_transaction", error)
    listener = Listener(COMMIT, check=answer)
    result = produce(listener).send_message_in_transaction(Message("T", b"x"))
    assert result.local_transaction_state is COMMIT
    assert visible(broker) == []
    clock.advance(6_001)
    broker.transaction_checks.check()
    eventually(lambda: broker.max_offset(TRANS_OP_HALF_TOPIC, 0) >= 1)
    [asked] = listener.checked
    assert (asked.msg_id, asked.topic, asked.queue_id) == (result.transaction_id, "T", 0)
    assert asked.reconsume_times == 0
    assert [it.msg_id for it in visible(broker)] == [result.transaction_id] * (answer is COMMIT)


def test_a_check_that_fails_or_does_not_know_is_made_again(produce, broker, clock):
    listener = Listener(UNKNOW, check=ValueError("not now"))
    produce(listener).send_message_in_transaction(Message("T", b"x"))
    for check in (ValueError("not now"), None, UNKNOW):
        listener.check = check
        clock.advance(60_000)
        broker.transaction_checks.check()
        assert listener.was_checked.acquire(timeout=DEADLINE_S)
        assert visible(broker) == []
    listener.check = COMMIT
    clock.advance(60_000)
    broker.transaction_checks.check()
    eventually(lambda: visible(broker))
    assert [it.get_property("TRANSACTION_CHECK_TIMES") for it in listener.checked] == list("1234")


def test_any_producer_of_the_group_can_answer(produce, broker, clock):
    first, second = Listener(UNKNOW), Listener(check=COMMIT)
    starter = produce(first)
    starter.send_message_in_transaction(Message("T", b"x"))
    starter.shutdown()
    produce(second)
    clock.advance(60_000)
    broker.transaction_checks.check()
    eventually(lambda: visible(broker))
    assert (len(first.checked), len(second.checked)) == (0, 1)


def test_a_producer_without_a_listener_says_nothing(manager, broker, clock, caplog):
    broker.update_topic(TopicConfig("T", 1, 1))
    half = Message("T", b"x", properties={"TRAN_MSG": "true", "PGROUP": "plain"})
    with Producer("plain", brokers=[broker], manager=manager) as producer:
        producer.send(half)
        clock.advance(60_000)
        broker.transaction_checks.check()
        eventually(lambda: "has no transaction listener" in caplog.text)
    assert visible(broker) == []


def test_hooks_see_how_transactions_end(produce, broker, clock):
    listener = Listener(UNKNOW, check=ROLLBACK)
    producer = produce(listener)
    seen = []

    class Hook:
        def end_transaction(self, context):
            seen.append((context.transaction_state, context.from_transaction_check))
            raise ValueError("a bug in a hook")

    producer.end_transaction_hooks.append(Hook())
    producer.send_message_in_transaction(Message("T", b"x"))
    clock.advance(60_000)
    broker.transaction_checks.check()
    eventually(lambda: broker.max_offset(TRANS_OP_HALF_TOPIC, 0) == 1)
    assert seen == [(UNKNOW, False), (ROLLBACK, True)]


def test_a_transaction_leaves_traces_of_its_half_and_of_its_end(produce, broker):
    producer = produce(Listener(COMMIT), enable_msg_trace=True)
    result = producer.send_message_in_transaction(Message("T", b"x", keys="k"))
    producer.shutdown()
    views = query_traces([broker], result.transaction_id)
    assert [view.trace_type for view in views] == [TraceType.Pub, TraceType.EndTransaction]
    assert views[1].transaction_state is COMMIT
    assert views[1].store_host == "127.0.0.1:10911"


def test_questions_beyond_the_limit_are_dropped(produce, broker, caplog):
    entered, go_on = threading.Semaphore(0), threading.Event()

    class Slow(Listener):
        def check_local_transaction(self, message):
            entered.release()
            assert go_on.wait(DEADLINE_S)
            return super().check_local_transaction(message)

    listener = Slow(check=UNKNOW)
    producer = produce(listener, check_request_hold_max=1)
    question = CheckTransactionState("group", MessageExt("T", b"x"), 0, 0, "id", "id")
    producer.check_transaction_state(broker, question)
    assert entered.acquire(timeout=DEADLINE_S)
    for _ in range(2):
        producer.check_transaction_state(broker, question)
    assert caplog.text.count("too many transactions to check: msg_id=id") == 1
    go_on.set()
    producer.shutdown()
    assert len(listener.checked) == 2


def test_a_message_that_failed_as_a_half_is_sent_as_any_other(produce, failing, broker):
    producer = produce(Listener(COMMIT), retry_times_when_send_failed=0)
    message = Message("T", b"x", keys="k", delay_time_level=1)
    before = dict(message.properties)
    failing.plan("send", DOWN)
    with pytest.raises(SendFailedError):
        producer.send_message_in_transaction(message)
    assert {**message.properties, "UNIQ_KEY": ""} == {**before, "UNIQ_KEY": ""}
    del message.properties["DELAY"]
    assert producer.send(message).send_status is SendStatus.SEND_OK
    [stored] = visible(broker)
    assert stored.get_property("TRAN_MSG") is None
    assert halves(broker) == 0


@pytest.mark.parametrize(
    "outcome", [STATUS(SendStatus.SEND_OK), STATUS(SendStatus.FLUSH_DISK_TIMEOUT)]
)
@pytest.mark.parametrize("answer", [COMMIT, ROLLBACK])
def test_a_message_of_an_ended_transaction_is_sent_as_any_other(
    produce, failing, broker, outcome, answer
):
    failing.plan("send", outcome)
    producer = produce(Listener(answer))
    message = Message("T", b"x", properties={"PGROUP": "own"})
    producer.send_message_in_transaction(message)
    assert message.properties.keys() == {"PGROUP", "UNIQ_KEY"}
    assert message.properties["PGROUP"] == "own"
    seen = len(visible(broker))
    producer.send(message)
    assert len(visible(broker)) == seen + 1
    assert halves(broker) == 1
