"""How the work of a query is cut into tasks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from analytics.datasource.plan.ranges import Range, tasks_of
from analytics.datasource.query.options import TaskSize
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import columns_of, source

MIB = 1 << 20
CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=2000)


def queue(messages: int, row_bytes: int, number: int = 0, first: int = 0) -> Range:
    return Range("b", "/b", "T", number, first, first + messages, row_bytes)


def sizes(tasks: list[list[Range]]) -> list[int]:
    return [sum(part.messages * part.row_bytes for part in task) for task in tasks]


def test_a_huge_queue_is_cut_and_tiny_ones_are_joined() -> None:
    huge, tiny = queue(4_000_000, 500), [queue(10, 100, number) for number in range(1, 5001)]
    tasks = tasks_of([huge, *tiny], TaskSize(128 * MIB))
    assert len(tasks) == 15
    assert max(sizes(tasks)) <= 128 * MIB + 500
    assert max(map(len, tasks)) == 5001  # the tiny ones in one task
    assert sum(part.messages for task in tasks for part in task) == 4_050_000


@pytest.mark.parametrize(
    ("messages", "row_bytes", "size", "count"),
    [
        (1000, 100, TaskSize(), 1),  # not worth more
        (400_000, 100, TaskSize(), 8),
        (60_000, 100, TaskSize(), 3),
        (400_000, 1 << 14, TaskSize(), 49),
        (1000, 100, TaskSize(least=7), 7),
        (1000, 100, TaskSize(most_bytes=1000, least=7), 100),
        (3, 100, TaskSize(least=50), 3),
        (3, 300 * MIB, TaskSize(), 3),
        (0, 1, TaskSize(least=3), 0),
    ],
)
def test_tasks_have_so_many_bytes(
    messages: int, row_bytes: int, size: TaskSize, count: int
) -> None:
    tasks = tasks_of([queue(messages, row_bytes, first=17)] if messages else [], size)
    assert len(tasks) == count
    at = 17
    for task in tasks:
        for part in task:
            assert part.first == at < part.end
            at = part.end
    assert at == 17 + messages


@pytest.mark.slow
def test_a_task_reads_the_same_part_of_several_queues() -> None:
    tasks = tasks_of([queue(80_000, 100, number, first=5) for number in range(4)], TaskSize())
    assert [[part.queue_id for part in task] for task in tasks] == [[0, 1, 2, 3]] * 8
    for number, task in enumerate(tasks):
        begins = {(part.first, part.end) for part in task}
        assert begins == {(5 + number * 10_000, 5 + (number + 1) * 10_000)}
    many = tasks_of([queue(10**7, 100, number) for number in range(500)], TaskSize(1 << 30))
    assert max(map(len, many)) <= 66  # planning stays in bounds


@given(
    stores=st.lists(
        st.lists(st.tuples(st.integers(1, 200_000), st.integers(1, 3000)), min_size=1, max_size=9),
        max_size=9,
    ),
    size=st.builds(TaskSize, st.integers(10**6, 10**9), st.none() | st.integers(1, 50)),
)
@pytest.mark.slow
def test_each_message_is_in_one_task(stores: list[list[tuple[int, int]]], size: TaskSize) -> None:
    ranges = [
        queue(*each, number, first=7)._replace(path=f"/{store}")
        for store, queues in enumerate(stores)
        for number, each in enumerate(queues)
    ]
    tasks = tasks_of(ranges, size)
    found: Counter[tuple[str, int, int]] = Counter()
    wanted: Counter[tuple[str, int, int]] = Counter()
    for edges, parts in ((found, [part for task in tasks for part in task]), (wanted, ranges)):
        for part in parts:
            assert part.messages > 0
            edges[part.path, part.queue_id, part.first] += 1
            edges[part.path, part.queue_id, part.end] -= 1
    assert {edge: count for edge, count in found.items() if count} == dict(wanted)


@pytest.mark.parametrize("table", ["messages", "consumequeue"])
def test_the_size_of_records_decides(tmp_path: Path, table: str) -> None:
    made = HandMade(CONFIG)
    for _ in range(200):
        made.put("T", 0, b"x" * 10)
        made.put("T", 1, b"x" * 1000)
    root = made.write(tmp_path)
    options: dict[str, Any] = {"table": table, "maxBytesPerPartition": "20000"}
    parts = source(root, **options).reader(columns_of(table)).partitions()
    tasks = [part.value for part in parts]
    by_queue = [0, 0]
    for task in tasks:
        for part in task:
            by_queue[part.queue_id] += 1
    total = sum(message.size for message in made.messages)
    if table == "messages":
        assert len(tasks) == pytest.approx(total / 20_000, abs=2)
        assert by_queue[1] > 3 * by_queue[0]
    else:
        assert len(tasks) == 1  # 400 units of 20 bytes
