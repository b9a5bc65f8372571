"""The agenda of a report: what is delivered later, as ``retry agenda`` and ``broker status`` have
it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analytics.engines.local import LocalEngine
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report.lag_report import MadeReport, lag_report
from analytics.report.stores import StoreRef
from analytics.store_rows.delayed import delayed_rows
from analytics.store_rows.retries import retry_rows
from analytics.store_rows.wanted import Wanted
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin import retries
from rmqctl.console import attention
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.delay_offsets import save_delay_offsets
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.cli import run
from tests.support.dead_letters import give_back

LEVEL = 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Five retries wait in a level."""
    root = tmp_path / "store"
    create_store(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        for number in range(5):
            sent = broker.send(Message("t", b"%d" % number), 0)
            (message,) = broker.query_unique("t", sent.msg_id)
            give_back(broker, "g", message, level=LEVEL)
    return root


def made(root: Path) -> MadeReport:
    return lag_report(LocalEngine(), [StoreRef("b", str(root))], now_ms(), Choice())


def status(root: Path) -> list[Any]:
    done = run("broker", "status", "-S", root, "-o", "json")
    found: list[Any] = done.json()["delay_levels"]
    return [(level["level"], level["waiting"], level["due_timestamp"]) for level in found]


def test_the_agenda_has_what_waits(root: Path) -> None:
    assert made(root).report.agenda == [{"broker": "b", "level": LEVEL, "messages": 5}]
    ((level, waiting, due),) = status(root)
    assert (level, waiting) == (LEVEL, 5)
    assert due > now_ms()


def test_the_agenda_has_no_message_that_was_sent_before_its_time(root: Path) -> None:
    assert run("retry", "now", "g", "--all", "--yes", "-S", root).code == 0
    assert run("retry", "agenda", "-S", root, "-o", "json").json() == []
    assert made(root).report.agenda == []
    assert status(root) == [(LEVEL, 0, None)]


@pytest.mark.parametrize("number", [0, 2, 4])
def test_of_what_waits_one_that_was_sent_before_its_time_does_not_count(
    root: Path, number: int
) -> None:
    waiting = run("retry", "agenda", "--each", "-S", root, "-o", "json").json()
    sent = waiting.pop(number)
    assert run("retry", "now", "g", sent["msg_id"], "--yes", "-S", root).code == 0
    assert made(root).report.agenda == [{"broker": "b", "level": LEVEL, "messages": 4}]
    assert status(root) == [(LEVEL, 4, waiting[0]["due_timestamp"])]


def test_what_waits_in_a_level_that_is_ahead_is_unknown_also_where_it_was_kept(
    root: Path, tmp_path: Path
) -> None:
    save_delay_offsets(root, {LEVEL: 99})
    direct = made(root)
    unknown = [{"broker": "b", "level": LEVEL, "messages": None}]
    sentence = f"how many messages wait in delay level {LEVEL} is unknown"
    assert direct.report.agenda == unknown
    assert any(sentence in one for one in direct.report.warnings)
    assert status(root) == [(LEVEL, None, None)]
    keep(direct.shares, now_ms(), tmp_path / "kept", [], None)
    gathered = gathered_report(LocalEngine(), find_kept([str(tmp_path / "kept")], None), Choice())
    assert gathered.report.agenda == unknown


def test_no_command_counts_what_waits_in_a_level_that_is_ahead(root: Path) -> None:
    """It is known of the group whose retries are in another level."""
    with EmbeddedBroker.open(root) as broker:
        for group in ("g", "other"):
            broker.update_group(SubscriptionGroupConfig(group))
        sent = broker.send(Message("t", b"x"), 0)
        (message,) = broker.query_unique("t", sent.msg_id)
        give_back(broker, "other", message, level=LEVEL + 1)
        for group in ("g", "other"):
            broker.update_consumer_offsets(group, [OffsetCommit("t", 0, 1)])
    save_delay_offsets(root, {LEVEL: 99})
    sentence = f"how many messages wait in delay level {LEVEL} is unknown"

    rows = run("retry", "agenda", "-S", root, "-o", "json").json()
    found = {row["level"]: (row["state"], row["messages"], row["overdue"]) for row in rows}
    assert found[LEVEL] == ("AHEAD", None, None)
    assert found[LEVEL + 1][1] == 1
    each = run("retry", "agenda", "--each", "-S", root, "-o", "json")
    assert len(each.json()) == 1
    assert sentence in each.err

    lags = run("lag", "show", "-S", root, "-o", "json").json()
    assert {row["group"]: row["retry"] for row in lags} == {"g": None, "other": 1}

    for group, is_said in (("g", True), ("other", False)):
        browsed = run("retry", "browse", group, "-S", root, "-o", "json")
        assert (sentence in browsed.err) == is_said
        planned = run("group", "alter", group, "--retry-max-times", 3, "-n", "-S", root)
        assert (sentence in planned.err + planned.out) == is_said
    sent_now = run("retry", "now", "g", "--all", "-n", "-S", root)
    assert sentence in sent_now.err

    said: list[str] = []
    with EmbeddedBroker.open(root, read_only=True) as broker:
        asked = Wanted(unknown=said.append)
        assert len(list(delayed_rows(broker, "b", asked))) == 1
        assert len(list(retry_rows(broker, "b", asked))) == 1
        assert list(retry_rows(broker, "b", Wanted({"other"}, unknown=pytest.fail))) != []
        (late,) = attention.of_agenda(retries.agenda(broker.view), now_ms())
    assert sum(sentence in one for one in said) == 2
    assert late.what == f"unknown how many wait, level {LEVEL} AHEAD"
