"""A delay level whose saved offset lies beyond its end: what waits there is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin import retries
from rmqctl.console import overview
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.delay_offsets import save_delay_offsets
from storage.configs.topics import TopicConfig
from storage.format.message import Message
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
