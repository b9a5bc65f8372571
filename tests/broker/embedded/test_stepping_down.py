"""A process whose store refuses writes does no timed work: the next process takes over."""

from __future__ import annotations

import os
import time

import pytest

from rmqctl.admin.broker.status import broker_status
from storage.format.message import Message
from tests.support.broker_puppet import broker_puppet
from tests.support.puppet import Puppet

WAIT = 20
SERVICES = ("delay_delivery", "transaction_checks")


def eventually(happened) -> bool:
    deadline = time.monotonic() + WAIT
    while not happened():
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


def pids(broker) -> set[int | None]:
    return {broker_status(broker).services[name]["pid"] for name in SERVICES}


def delivered(broker, topic: str) -> int:
    return sum(broker.max_offset(topic, n) for n in range(4)) if broker.topic(topic) else 0


@pytest.mark.crash
@pytest.mark.conformance("H12")
def test_one_failed_write_in_the_elected_process_stops_no_delivery(open_broker):
    broker = open_broker()
    puppet = Puppet("tests.support.broker_puppet")
    with puppet.begin("open_on_failing_disk", root=str(broker.view.root)) as other:
        other.call("serve")
        assert eventually(lambda: pids(broker) == {other.pid})
        broker.start_services()
        assert "open the store anew" in other.call("fail_once", topic="New")
        broker.send(Message("T", b"x", delay_time_level=1))
        assert eventually(lambda: delivered(broker, "T") == 1)
        assert eventually(lambda: pids(broker) == {os.getpid()})
        assert not other.call("is_elected")


@pytest.mark.crash
def test_no_service_is_said_to_run_where_each_store_refuses_writes(open_broker):
    broker = open_broker()
    puppet = Puppet("tests.support.broker_puppet")
    with puppet.begin("open_on_failing_disk", root=str(broker.view.root)) as other:
        other.call("serve")
        assert eventually(lambda: pids(broker) == {other.pid})
        other.call("fail_once", topic="New")
        assert eventually(lambda: pids(broker) == {None})
        with broker_puppet(broker.view.root) as third:
            third.call("serve")
            assert eventually(lambda: pids(broker) == {third.pid})
