"""A transaction is visible once, wherever the process that checks half messages is killed."""

from __future__ import annotations

from contextlib import suppress

import pytest

from broker.api.transactions import EndTransactionRequest
from broker.config import BrokerConfig
from broker.transaction import check
from broker.transaction.check import COMMIT_EVERY, TransactionCheckService
from storage.format.message import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC
from tests.broker.transaction.test_transactions import COMMIT, ROLLBACK, Bench
from tests.support.broken_off import BrokenOff, broken_off


@pytest.fixture
def bench(open_broker):
    return Bench(open_broker)


def service(bench, *, ask=None, put=None):
    store = bench.broker.store
    return TransactionCheckService(
        bench.config,
        bench.broker._topics,
        bench.broker._progress,
        view=lambda: store.view,
        put=put or store.put,
        ask=ask or bench.ask,
        now=lambda: bench.now,
        file_reserved_ms=72 * 3_600_000,
    )


@pytest.mark.slow
def test_wherever_a_round_is_broken_off_each_transaction_is_visible_once(bench):
    sent = 0

    def work():
        nonlocal sent
        for state in (COMMIT, ROLLBACK):
            body = b"%s %d" % (state.name.encode(), sent)
            bench.prepare(body)
            bench.plans[body] = state
            sent += 1
        bench.now += 60_000
        service(bench).check()

    for number in broken_off(work, check):
        if number % 3 == 0:  # else the next one is broken off, too
            bench.now += 60_000
            service(bench).check()
    for _ in range(2):
        bench.now += 60_000
        service(bench).check()
    committed = sorted(body for body, state in bench.plans.items() if state is COMMIT)
    assert sorted(bench.bodies()) == committed
    assert len(committed) > 40


@pytest.mark.parametrize("unique_id", [True, False])
def test_a_copy_that_a_killed_checker_left_is_found_before_another_is_stored(bench, unique_id):
    for body in (b"a", b"b"):
        bench.prepare(body)
    if not unique_id:
        _drop_unique_ids(bench)
    before = len(bench.messages(TRANS_HALF_TOPIC))

    def put(records):
        bench.broker.store.put(records)
        raise BrokenOff

    bench.now += 60_000
    with pytest.raises(BrokenOff):
        service(bench, put=put).check()
    assert len(bench.messages(TRANS_HALF_TOPIC)) == before + 1
    bench.now += 60_000
    service(bench).check()
    assert [question.message.body for question in bench.asked][-2:] == [b"b", b"a"]
    assert len(bench.messages(TRANS_HALF_TOPIC)) == before + 3


def _drop_unique_ids(bench):
    from broker.send.message_builder import stored_again
    from broker.send.send import prepared

    for half in bench.messages(TRANS_HALF_TOPIC):
        properties = {n: v for n, v in half.properties.items() if n != "UNIQ_KEY"}
        encoded = bench.broker._builder.encode(properties)
        bench.broker.store.put(prepared([stored_again(half, TRANS_HALF_TOPIC, 0, encoded)]))
    bench.broker._progress.move("CID_RMQ_SYS_TRANS", {(TRANS_HALF_TOPIC, 0): 2})


def test_an_end_that_names_any_copy_ends_all_of_them(bench):
    """As three killed checkers of an earlier version left it."""
    bench.prepare(b"x")
    asked = []

    def ask(question):
        asked.append(question)
        raise BrokenOff

    for _ in range(3):
        bench.now += 60_000
        with pytest.raises(BrokenOff):
            service(bench, ask=ask).check()
    for question in reversed(asked):  # answers to all of them arrive late
        bench.broker.end_transaction(
            EndTransactionRequest(
                "p", question.transaction_state_table_offset, question.commitlog_offset, COMMIT
            )
        )
    bench.check()
    assert bench.bodies() == [b"x"]
    assert bench.asked == []


def test_a_late_answer_and_the_answer_to_a_check_commit_once(bench):
    sent = bench.prepare(b"x")
    bench.check()
    bench.end(sent, COMMIT)
    bench.plans[b"x"] = COMMIT
    bench.check()
    bench.check()
    assert bench.bodies() == [b"x"]
    assert len(bench.asked) <= 2


def test_what_is_put_aside_by_a_killed_checker_is_put_aside_once(open_broker):
    bench = Bench(open_broker, BrokerConfig(transaction_check_max=1))
    bench.prepare(b"x")
    bench.check()

    def put(records):
        bench.broker.store.put(records)
        raise BrokenOff

    for _ in range(2):
        bench.now += 60_000
        with suppress(BrokenOff):  # the second one stores nothing
            service(bench, put=put).check()
    assert len(bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)) == 1


def test_progress_is_committed_within_a_round_for_java_brokers(bench, root):
    for n in range(2 * COMMIT_EVERY):
        bench.prepare(b"%d" % n)

    def ask(question):
        if question.message.body == b"%d" % (COMMIT_EVERY + 3):
            raise BrokenOff
        return True

    bench.now += 60_000
    with pytest.raises(BrokenOff):
        service(bench, ask=ask).check()
    assert bench.offsets()[0] == COMMIT_EVERY
    text = (root / "config" / "consumerOffset.json").read_text()
    assert f"0:{COMMIT_EVERY}" in text
