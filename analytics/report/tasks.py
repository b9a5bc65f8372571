"""From surveys to works: who counts what, in pieces of about the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from analytics.engines.task import CountTask
from analytics.kernels.partials import CHUNK, QueueTask

from .scan import StoreScan, tasks_of

_PER_CORE: Final = 3
_USUAL: Final = 8 * CHUNK
"""Messages of a work where there are many: a quarter of a second, so that progress is seen."""
_MOST_WORKS: Final = 1_000
"""From here on works get larger instead of more."""


def plan(surveys: Sequence[StoreScan], cores: int, *, exact: bool = False) -> list[CountTask]:
    """Pack all that is to be counted into works for ``cores`` processes, the largest first.

    A work has tasks of one store; none is smaller than a million messages for being many.
    """
    job = str(uuid4())
    total = sum(survey.backlog for survey in surveys)
    each = min(-(-total // (cores * _PER_CORE)), max(_USUAL, total // _MOST_WORKS))
    each = max(CHUNK, each)
    works: list[tuple[int, CountTask]] = []
    for survey in surveys:
        tasks: list[QueueTask] = []
        size = 0
        for queue in survey.queues:
            for task in tasks_of(queue, each):
                tasks.append(task)
                size += task.behind - task.first
                if size >= each:
                    works.append((size, _work(job, survey, tasks, exact=exact)))
                    tasks, size = [], 0
        if tasks:
            works.append((size, _work(job, survey, tasks, exact=exact)))
    return [work for _, work in sorted(works, key=lambda sized: -sized[0])]


def _work(job: str, survey: StoreScan, tasks: Sequence[QueueTask], *, exact: bool) -> CountTask:
    each_time = exact or survey.each_time
    each_tag = exact or survey.each_tag
    return CountTask(job, survey.ref.path, tuple(tasks), survey.minutes, each_time, each_tag)
