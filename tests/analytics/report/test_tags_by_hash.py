"""The tag of a hash is that of any message of the topic that can be read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from analytics.engines.local import LocalEngine
from analytics.kernels import partials
from analytics.lag.selection import Choice
from analytics.report import scan as scanning
from analytics.report.lag_report import lag_report
from analytics.report.stores import StoreRef
from tests.analytics.report.test_lag_report import NOW, report, write_offsets
from tests.support.hand_made import TINY, HandMade


@pytest.fixture(autouse=True)
def by_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tags are counted by hash where a store is as small as these, too."""
    monkeypatch.setattr(scanning, "EACH_TIME_UP_TO", -1)
    monkeypatch.setattr(scanning, "EACH_TAG_UP_TO", -1)


def tags_in(root: Path, messages: Collection[tuple[str, int, str]], bad: Collection[int]) -> object:
    """Messages by topic and tag, read of a store of these (topic, queue, tag); the bodies of some
    are damaged."""
    store = HandMade(TINY)
    for topic, queue_id, tag in messages:
        store.put(topic, queue_id, tags=tag)
    for number in bad:
        place = store.messages[number].commitlog_offset
        store.log[store.log.index(b"body", place)] ^= 1
    store.write(root)
    write_offsets(root, {("g", topic, queue_id): 0 for topic, queue_id, _ in messages})
    found: dict[str, dict[str | None, int]] = {}
    for row in report(root).tags:
        found.setdefault(row["topic"], {})[row["tag"]] = row["messages"]
    return found


@pytest.mark.parametrize("bad", [[0], [0, 1], [0, 1, 2], [0, 1, 4], [1]])
def test_another_example_is_read_if_one_is_damaged(tmp_path: Path, bad: list[int]) -> None:
    assert tags_in(tmp_path, [("T", 0, "pay")] * 8, bad) == {"T": {"pay": 8}}


@pytest.mark.parametrize("queue_id", [0, 1])
def test_a_queue_without_a_readable_message_takes_the_tag_of_others(
    tmp_path: Path, queue_id: int
) -> None:
    messages = [("T", number, "pay") for number in (queue_id, 1 - queue_id, 1 - queue_id)]
    assert tags_in(tmp_path, messages, [0]) == {"T": {"pay": 3}}


def test_a_topic_does_not_take_the_tag_of_another_one(tmp_path: Path) -> None:
    messages = [("T", 0, "Aa"), ("U", 0, "BB"), ("T", 0, "Aa")]  # of one hash
    assert tags_in(tmp_path, messages, []) == {"T": {"Aa": 2}, "U": {"BB": 1}}


def test_a_tag_of_which_nothing_can_be_read_is_unknown(tmp_path: Path) -> None:
    messages = [("T", 0, "pay"), ("T", 0, "pay"), ("T", 0, "ship")]
    assert tags_in(tmp_path, messages, [0, 1]) == {"T": {None: 2, "ship": 1}}


class Cores(LocalEngine):
    """As many as are said, which decides how queues are cut into tasks."""

    def __init__(self, cores: int) -> None:
        self.cores = cores  # type: ignore[misc]


@pytest.mark.parametrize("queues", [1, 2])
def test_of_two_tags_of_one_hash_the_first_unread_one_names_both_however_tasks_are_cut(
    tmp_path: Path, queues: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (scanning, "CHUNK", 4),
        (scanning, "_USUAL", 8),
        (partials, "CHUNK", 4),
    ):
        monkeypatch.setattr(module, name, value)
    store = HandMade(TINY)
    for number in range(24 * queues):
        at = number // queues
        store.put("T", number % queues, tags="Aa" if at < 2 or 6 <= at < 10 else "BB")
    store.write(tmp_path)
    write_offsets(tmp_path, {("g", "T", queue_id): 2 for queue_id in range(queues)})
    for cores in (1, 2, 3, 4, 8):
        made = lag_report(Cores(cores), [StoreRef("b", str(tmp_path))], NOW, Choice())
        assert {row["tag"]: row["messages"] for row in made.report.tags} == {"BB": 22 * queues}
