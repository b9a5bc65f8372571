"""Tests of `billing.py`: each has a store of its own. `pytest` in this folder runs them."""

import billing
import pytest

from rmqctl import Message


@pytest.fixture(autouse=True)
def balances(monkeypatch):
    """Begin each test with the same money."""
    monkeypatch.setattr(billing, "balances", {"ann": 100, "bob": 10})
    return billing.balances


@pytest.fixture
def consumer(rocketmq_consumer):
    """The program's listener in its group."""
    return rocketmq_consumer("billing", {"orders": "new"}, billing.charge)


def test_an_order_is_charged_once(rocketmq_store, rocketmq_producer, consumer, balances):
    rocketmq_producer.send(billing.order("ann", 30))
    rocketmq_store.wait_until_consumed("billing")
    assert balances["ann"] == 70


def test_an_order_waits_for_money(rocketmq_store, rocketmq_producer, consumer, balances):
    rocketmq_producer.send(billing.order("bob", 50))
    while not rocketmq_store.retries("billing"):
        pass
    balances["bob"] = 60
    rocketmq_store.advance_delay(10)  # the first retry comes after 10 s
    rocketmq_store.wait_until_consumed("billing")
    assert balances["bob"] == 10


def test_what_is_no_order_is_passed_over(rocketmq_store, rocketmq_producer, consumer, balances):
    rocketmq_producer.send(Message("orders", b"\x00", tags="new"))
    rocketmq_producer.send(billing.order("ann", 1))
    rocketmq_store.wait_until_consumed("billing")
    assert balances["ann"] == 99


def test_messages_are_of_the_form_that_others_expect(rocketmq_store, rocketmq_producer):
    rocketmq_producer.send(billing.order("ann", 30))
    (message,) = rocketmq_store.messages("orders")
    assert message.body == b'{"customer": "ann", "sum": 30}'
    assert message.tags == "new"
