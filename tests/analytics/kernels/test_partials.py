"""The kernels count what a loop over all messages counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from analytics.kernels.edges import MinuteEdges
from analytics.kernels.partials import (
    MINUTE_MS,
    UNKNOWN_MINUTE,
    PartialCounts,
    Partials,
    QueueTask,
    add_up,
    count_unread,
)
from storage.format.java_hash import tags_code
from storage.readonly import StoreView
from tests.support.examples import examples
from tests.support.hand_made import START_MS, TINY, HandMade, Stored

Counts = dict[tuple[int, int], tuple[int, int]]
CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)


def counted(cells: PartialCounts) -> Counts:
    rows = zip(*(column.tolist() for column in cells[1:]), strict=True)
    return {(segment, key): (messages, size) for segment, key, messages, size in rows}


def by_hand(
    messages: list[Stored], cuts: tuple[int, ...], first: int, key: str
) -> dict[tuple[int, int], tuple[int, int]]:
    number: Counter[tuple[int, int]] = Counter()
    size: Counter[tuple[int, int]] = Counter()
    for message in messages:
        if message.queue_offset < first:
            continue
        segment = sum(cut <= message.queue_offset for cut in cuts) - 1
        value = message.store_timestamp // MINUTE_MS if key == "minute" else hash_of(message.tags)
        number[segment, value] += 1
        size[segment, value] += message.size
    return {cell: (number[cell], size[cell]) for cell in number}


def hash_of(tag: str | None) -> int:
    return tags_code(tag) if tag else 0


def edges_of(messages: list[Stored]) -> MinuteEdges:
    times = [message.store_timestamp // MINUTE_MS for message in messages]
    return MinuteEdges(np.arange(min(times), max(times) + 1, dtype=np.int64) * MINUTE_MS)


MESSAGES = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 20_000, 59_999, 60_000, 200_000)),
        st.integers(0, 2),
        st.sampled_from((None, "a", "b")),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=MESSAGES, cuts=st.sets(st.integers(0, 20), min_size=1, max_size=4), data=st.data())
def test_segments_minutes_and_tags(
    messages: list[tuple[int, int, str | None, int]],
    cuts: set[int],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("partials")
    store = HandMade(CONFIG)
    for step_ms, queue_id, tag, size in messages:
        store.put("T", queue_id, b"x" * size, tags=tag, step_ms=step_ms)
    store.write(root)
    exact = data.draw(st.booleans())
    edges = edges_of(store.messages)
    with StoreView.open(root) as view:
        for queue_id in range(3):
            mine = [message for message in store.messages if message.queue_id == queue_id]
            known = tuple(sorted(cut for cut in cuts if cut < len(mine)))
            if not known:
                continue
            middle = data.draw(st.integers(known[0], len(mine)))
            parts = [
                count_unread(view, task, edges, view.store_timestamps, each_time=exact)
                for task in (
                    QueueTask(7, "T", queue_id, known, known[0], middle),
                    QueueTask(7, "T", queue_id, known, middle, len(mine)),
                )
            ]
            assert not any(len(part.missing) or part.disorder for part in parts)
            minutes = add_up([part.minutes for part in parts])
            tags = add_up([part.tags for part in parts])
            assert counted(minutes) == by_hand(mine, known, known[0], "minute")
            assert counted(tags) == by_hand(mine, known, known[0], "tag")
            texts = {tag: text for part in parts for tag, text in part.texts.items()}
            tagged = {m.tags for m in mine[known[0] :] if m.tags}
            assert texts == {("T", hash_of(tag)): tag for tag in tagged}
            assert set(minutes.queue.tolist()) == {7}


def backwards(root: Path) -> HandMade:
    store = HandMade(CONFIG)
    for number in range(40):
        store.put("T", 0, step_ms=-70_000 if number % 9 == 8 else 30_000)
    store.write(root)
    return store


def count(view: StoreView, store: HandMade) -> Partials:
    task = QueueTask(0, "T", 0, (0,), 0, len(store.messages))
    return count_unread(view, task, edges_of(store.messages), view.store_timestamps)


def test_where_store_times_go_back_every_record_is_looked_at(tmp_path: Path) -> None:
    store = backwards(tmp_path)
    with StoreView.open(tmp_path) as view:
        found = count(view, store)
    assert found.disorder
    assert counted(found.minutes) == by_hand(store.messages, (0,), 0, "minute")


def test_units_whose_file_is_missing_are_counted_without_bytes_and_time(tmp_path: Path) -> None:
    store = HandMade(CONFIG)
    for _ in range(30):
        store.put("T", 0, step_ms=25_000)
    store.write(tmp_path)
    (tmp_path / "consumequeue/T/0" / f"{140:020}").unlink()
    with StoreView.open(tmp_path) as view:
        found = count(view, store)
    gone = store.messages[7:14]
    assert found.missing.messages.tolist() == [7]
    expected = by_hand([m for m in store.messages if m not in gone], (0,), 0, "minute")
    assert counted(found.minutes) == {**expected, (0, UNKNOWN_MINUTE): (7, 0)}


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [(0,), (0, 1, 2_990), (5, 1_500)])
def test_every_message_may_have_a_tag_of_its_own(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    store = HandMade(CONFIG.with_(mapped_file_size_commit_log=1 << 20))
    for number in range(3_000):
        store.put("T", 0, tags=f"tag {number if number > 1_100 else number % 7}", step_ms=100)
    store.write(tmp_path)
    with StoreView.open(tmp_path) as view:
        task = QueueTask(0, "T", 0, cuts, cuts[0], 3_000)
        found = count_unread(view, task, edges_of(store.messages), view.store_timestamps)
    assert counted(found.tags) == by_hand(store.messages, cuts, cuts[0], "tag")
    assert len(found.texts) > 1_000
    assert all(text and ("T", hash_of(text)) == tag for tag, text in found.texts.items())


@pytest.mark.slow
def test_few_records_are_looked_at(tmp_path: Path) -> None:
    store = HandMade(CONFIG.with_(mapped_file_size_commit_log=1 << 20))
    for number in range(4_000):
        store.put("T", number % 8, step_ms=100)
    store.write(tmp_path)
    edges = edges_of(store.messages)
    with StoreView.open(tmp_path) as view:
        for queue_id in range(8):
            task = QueueTask(queue_id, "T", queue_id, (0,), 0, 500)
            count_unread(view, task, edges, view.store_timestamps)
    assert len(edges.times) == 8
    assert edges.reads < 150


assert START_MS % MINUTE_MS == 20_000  # so that minutes begin within the steps above
