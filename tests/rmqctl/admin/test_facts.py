"""What topics and groups are, through the library: no command line, no EmbeddedBroker."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from broker.api.members import (
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from rmqctl import admin
from rmqctl.admin import audit, broker, dead_letters, groups, lag, messages, retries, store, topics
from rmqctl.errors import NotFound
from tests.support.cli import ROOT

PACKAGES = [topics, groups, lag, dead_letters, retries, store, broker, audit, messages]
START = 1_767_225_600_000
MINUTE = 60_000
CONSUMER = ConsumerData(
    "live",
    ConsumeType.CONSUME_PASSIVELY,
    MessageModel.CLUSTERING,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    (SubscriptionData("orders"),),
)


def test_topics_are_listed_and_described(asked):
    rows = {row.topic: row for row in topics.list_topics(asked.view, asked.broker)}
    assert rows["orders"] == ("orders", "normal", 2, 2, 6, 15)
    assert rows["TBW102"].kind == "system"
    [row] = topics.describe(asked.view, asked.broker, ["orders"])
    assert (row.messages, row.groups) == (15, ["g"])
    assert (row.first_timestamp, row.last_timestamp) == (START, START + 9 * MINUTE)
    assert len(topics.describe(asked.view, asked.broker)) == len(rows)
    with pytest.raises(NotFound, match="topic nope does not exist"):
        topics.describe(asked.view, asked.broker, ["orders", "nope"])


def test_queues_of_topics_have_bounds_and_times(asked):
    first, second = topics.queues(asked.view, asked.broker, ["orders"])
    assert first == ("orders", "broker-x", 0, 0, 10, 10, START, START + 9 * MINUTE)
    assert second[2:6] == (1, 0, 5, 5)
    assert {row.topic for row in topics.queues(asked.view, asked.broker)} >= {"orders"}
    with pytest.raises(NotFound):
        topics.queues(asked.view, asked.broker, ["nope"])


def test_figures_of_topics_add_up_to_the_log(asked):
    [orders] = topics.stats(asked.view, asked.broker, ["orders"])
    whole = orders.whole()
    assert (whole.messages, whole.rate) == (15, 15 / (9 * 60))
    assert [row.messages for row in orders.by_queue()] == [10, 5]
    assert sum(row.messages for row in orders.by_hour(None)) == 15
    log = topics.log_bytes(asked.view)
    used = [figures.usage(log) for figures in topics.stats(asked.view, asked.broker)]
    rest = topics.rest_of_log(asked.view, used)
    assert sum(row.bytes or 0 for row in used) + (rest.bytes or 0 if rest else 0) == log


def test_groups_are_listed_and_described(asked):
    rows = {row.group: row for row in groups.list_groups(asked.view, asked.broker)}
    assert (rows["g"].kind, rows["g"].members, rows["g"].topics) == ("normal", 0, 1)
    assert rows["TOOLS_CONSUMER"].kind == "system"
    [row] = groups.describe(asked.view, asked.broker, ["g"])
    assert (row.topics, row.members, row.subscriptions) == (["orders"], [], None)
    with pytest.raises(NotFound, match="group h does not exist"):
        list(groups.describe(asked.view, asked.broker, ["h"]))


def test_members_are_read_from_the_store_and_asked(asked, orders):
    with EmbeddedBroker.open(orders) as broker:
        broker.connect("one", object())  # type: ignore[arg-type]  # no call comes
        broker.heartbeat(HeartbeatData("one", consumers=(CONSUMER,)))
        answers = {("live", "one"): {"queues": [{"topic": "orders", "queue_id": 1}]}}
        [row] = groups.clients(asked.view, asked.broker, ["live"], ask=lambda *who: answers[who])
        assert (row.client_id, row.queues) == ("one", ["orders:1"])
        assert row.subscriptions == ["orders:*"]
        [described] = groups.describe(asked.view, asked.broker, ["live"])
        assert (described.members, described.message_model) == (["one"], "CLUSTERING")

        def fail(*_: str) -> dict[str, object]:
            raise OSError

        [row] = groups.clients(asked.view, asked.broker, ask=fail)
        assert (row.queues, row.running_info) == (None, None)


def test_why_a_group_is_behind(asked):
    now_ms = START + 60 * MINUTE
    found = groups.why(asked.view, asked.broker, "g", now_ms=now_ms, ask=lambda *_: {})
    assert (found.group, found.lag, found.unknown_queues) == ("g", 5, 1)
    assert [(queue["queue_id"], queue["lag"]) for queue in found.queues] == [(0, 5), (1, None)]
    assert found.queues[0]["next_message"]["queue_offset"] == 5
    assert found.facts
    with pytest.raises(NotFound):
        groups.why(asked.view, asked.broker, "h", now_ms=START, ask=lambda *_: {})


@pytest.mark.parametrize("package", PACKAGES)
def test_every_function_has_a_test_and_says_what_it_does(package):
    noun = package.__name__.rpartition(".")[2]
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for name in package.__all__:
        if inspect.isfunction(getattr(package, name)):
            pattern = rf"{noun}\.{name}\b|admin\.{name}\(|\(admin\.{name}[,)]"
            assert re.search(pattern, text), name
            assert getattr(package, name).__doc__, name
            assert name in package.__doc__, name
    assert getattr(admin, noun) is package
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.slow
def test_the_library_loads_no_terminal():
    code = "import sys\nfrom rmqctl import admin\n"
    code += "for noun in admin.__all__:\n"
    code += "    [getattr(getattr(admin, noun), name) for name in getattr(admin, noun).__all__]\n"
    code += "bad = ('typer', 'rich', 'rmqctl.cli', 'numpy', 'broker.embedded')\n"
    code += "print([m for m in sys.modules if m.startswith(bad)])"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert shown.stdout == "[]\n"
