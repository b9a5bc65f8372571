"""From scans to tasks: dividing the counting into pieces of about the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from analytics.engines.task import CountTask
from analytics.kernels.partials import CHUNK, QueueTask

from .scan import StoreScan, tasks_of

_PER_CORE: Final = 3
_USUAL: Final = 8 * CHUNK
"""Messages of a task where there are many: a quarter of a second, so that progress is visible."""
_MOST_WORKS: Final = 1_000
"""From here on tasks get larger instead of more."""


def plan(scans: Sequence[StoreScan], cores: int, *, exact: bool = False) -> list[CountTask]:
    """Pack all messages to be counted into tasks for ``cores`` processes, the largest first.

    A task has parts of one store; none is smaller than a million messages only to make more tasks.
    """
    job = str(uuid4())
    total = sum(scan.backlog for scan in scans)
    each = min(-(-total // (cores * _PER_CORE)), max(_USUAL, total // _MOST_WORKS))
    each = max(CHUNK, each)
    works: list[tuple[int, CountTask]] = []
    for scan in scans:
        tasks: list[QueueTask] = []
        size = 0
        for queue in scan.queues:
            for task in tasks_of(queue, each):
                tasks.append(task)
                size += task.end - task.first
                if size >= each:
                    works.append((size, _work(job, scan, tasks, exact=exact)))
                    tasks, size = [], 0
        if tasks:
            works.append((size, _work(job, scan, tasks, exact=exact)))
    return [work for _, work in sorted(works, key=lambda sized: -sized[0])]


def _work(job: str, scan: StoreScan, tasks: Sequence[QueueTask], *, exact: bool) -> CountTask:
    each_time = exact or scan.each_time
    each_tag = exact or scan.each_tag
    return CountTask(job, scan.ref.path, tuple(tasks), scan.minutes, each_time, each_tag)
