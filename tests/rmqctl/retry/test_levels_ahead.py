"""A delay level whose saved offset lies beyond its end: what waits there is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.lag.delayed import targets_in_doubt, waiting_counts
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin import retries
from rmqctl.console import overview
from rmqctl.testing.store import RocketMQStore
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.delay_offsets import save_delay_offsets
from storage.configs.topics import TopicConfig
from storage.errors import StoreError
from storage.format.message import SCHEDULE_TOPIC, Message
from storage.queue.reader import QueueBounds
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import give_back

LEVEL = 10
SENTENCE = f"how many messages wait in delay level {LEVEL} is unknown"


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """A retry in a level that is ahead, and another in the next; their unique ids."""
    root = tmp_path / "store"
    create_store(root, SMALL_STORE)
    found = []
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        for number, group in enumerate(("g", "other")):
            sent = broker.send(Message("t", b"%d" % number), 0)
            (message,) = broker.query_unique("t", sent.msg_id)
            give_back(broker, group, message, level=LEVEL + number)
            found.append(message.msg_id)
    save_delay_offsets(root, {LEVEL: 99})
    return found


@pytest.fixture
def root(ids: list[str], tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_the_console_names_the_level(root: Path) -> None:
    with StoreView.open(root) as view:
        line = overview.delayed_line(list(retries.agenda(view)), now_ms())
    text = "".join(span.text for span in line)
    assert text.startswith(f" DELAYED        1 waiting, level {LEVEL} unknown   next in ")
    assert text.endswith(f"   AHEAD (level {LEVEL})")

    async def steps(console):
        await console.until(f"1 waiting, level {LEVEL} unknown")

    drive(root, steps, "overview")


def test_the_agenda_of_the_console_names_the_level_beside_its_sums(root: Path) -> None:
    async def steps(console):
        await console.until(f"1 wait: 0 overdue, 1 within the hour, 0 later, level {LEVEL} unknown")

    drive(root, steps, "agenda")


def test_group_why_does_not_say_that_nothing_waits(root: Path) -> None:
    with EmbeddedBroker.open(root) as broker:
        for group in ("g", "other"):
            broker.update_consumer_offsets(group, [OffsetCommit("t", 0, 2)])
    found = run("group", "why", "g", "-S", root, "-o", "json").json()
    counts = [found["retries"][name] for name in ("waiting", "overdue", "next_due_timestamp")]
    assert counts == [None, None, None]
    assert found["state"] == "UNKNOWN"
    (doubt,) = found["retries"]["doubts"]
    assert SENTENCE in doubt
    facts = {row["part"]: row["what"] for row in found["facts"]}
    assert facts["RETRIES"] == doubt
    assert facts["STATE"].startswith("how many of its retries wait is unknown; 0 messages")
    assert facts["DO"] == "rmqctl retry agenda"
    other = run("group", "why", "other", "-S", root, "-o", "json").json()
    assert (other["state"], other["retries"]["waiting"]) == ("OK", 1)
    assert other["retries"]["doubts"] == []


@pytest.mark.parametrize("command", ["now", "dead"])
def test_a_retry_of_which_it_is_unknown_whether_it_waits_is_not_denied(
    root: Path, ids: list[str], command: str
) -> None:
    refused = run("retry", command, "g", ids[0], "-n", "-S", root)
    assert refused.code == 3
    assert "no waiting retry" in refused.err
    assert SENTENCE in refused.err
    assert SENTENCE not in run("retry", command, "other", ids[0], "-n", "-S", root).err


def test_a_retry_of_which_it_is_unknown_whether_it_waits_is_shown(
    root: Path, ids: list[str]
) -> None:
    shown = run("retry", "show", "g", ids[0], "-S", root, "-o", "json")
    assert shown.code == 0, shown.err
    assert [row["what"] for row in shown.json()] == ["STORED", "FAILED"]
    assert run("retry", "show", "other", ids[0], "-S", root).code == 3


def test_a_store_of_a_test_does_not_count_it_as_consumed(root: Path) -> None:
    store = RocketMQStore(root)
    with EmbeddedBroker.open(root) as broker:
        for group in ("g", "other"):
            broker.update_consumer_offsets(group, [OffsetCommit("t", 0, 2)])
    with pytest.raises(StoreError, match=SENTENCE):
        store.retries("g")
    assert len(store.retries("other")) == 1
    with pytest.raises(TimeoutError, match=SENTENCE):
        store.wait_until_consumed("g", timeout=0.05)


def test_a_setting_without_the_level_warns(root: Path) -> None:
    short = " ".join(["1s"] * (LEVEL - 1))
    words = ("broker", "config", "set", "messageDelayLevel", short, "-S", root)
    where = f"(an unknown number in level {LEVEL}, 1 in level {LEVEL + 1})"
    assert f"messages may wait in delay levels that messageDelayLevel lacks {where}" in (
        run(*words, "-n").err
    )
    assert run(*words, "--yes").code == 0
    for command in (("broker", "status"), ("retry", "agenda")):
        assert where in run(*command, "-S", root).err


def test_broker_status_shows_the_saved_offset_of_each_level(root: Path) -> None:
    save_delay_offsets(root, {LEVEL: 99})
    levels = run("broker", "status", "-S", root, "-o", "json").json()["delay_levels"]
    assert [(one["level"], one["offset"], one["max_offset"], one["waiting"]) for one in levels] == [
        (LEVEL, 99, 1, None),
        (LEVEL + 1, None, 1, 1),
    ]


def test_the_rows_of_messages_are_complete_where_the_filter_selects_none_of_the_level(
    root: Path, ids: list[str]
) -> None:
    words = ("retry", "agenda", "--each", "-S", root, "-o", "json", "--id")
    assert SENTENCE in run(*words, ids[0]).err
    found = run(*words, ids[1])
    assert (len(found.json()), found.err) == (1, "")


def test_in_an_empty_level_that_is_ahead_nothing_waits(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds_of = StoreView.queue_bounds

    def all_deleted(view: StoreView, topic: str, queue_id: int) -> QueueBounds:
        bounds = bounds_of(view, topic, queue_id)
        if (topic, queue_id) == (SCHEDULE_TOPIC, LEVEL - 1):
            return QueueBounds(bounds.max_offset, bounds.max_offset)
        return bounds

    monkeypatch.setattr(StoreView, "queue_bounds", all_deleted)
    rows = run("retry", "agenda", "-S", root, "-o", "json").json()
    found = {row["level"]: (row["state"], row["messages"], row["overdue"]) for row in rows}
    assert found[LEVEL] == ("AHEAD", 0, 0)
    with EmbeddedBroker.open(root) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("t", 0, 2)])
    assert run("lag", "show", "-S", root, "-o", "json").json()[0]["retry"] == 0
    with StoreView.open(root) as view:
        counts = waiting_counts(view)
        assert targets_in_doubt(view) == {}
    assert [None if count is None else count.total() for count in counts.values()] == [0, 1]
