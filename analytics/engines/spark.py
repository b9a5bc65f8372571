"""The kernels on Spark's workers: it hands out works and brings back what was counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from analytics.errors import SparkFailedError
from analytics.kernels.partials import Partials

from .work import Work, do, together

if TYPE_CHECKING:
    from pyspark import SparkContext

    from analytics.spark.session import SparkSession

NAME = "spark"
_LOOK_S: Final = 0.1


def run(
    spark: SparkSession, works: Sequence[Work], progress: Callable[[int], None] | None = None
) -> Partials:
    """Do all works, one task each. ``progress`` is told how many are done, some times a second.

    Raises SparkFailedError. An interruption (Ctrl-C) cancels the job.
    """
    if not works:
        return together([])
    context = spark.context
    group = f"rmqctl-{uuid4()}"
    found: list[Partials] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def count() -> None:
        try:
            context.setJobGroup(group, "lag report", interruptOnCancel=True)
            found.extend(context.parallelize(works, len(works)).map(do).collect())
        except Exception as error:  # noqa: BLE001 - told below, in the thread that asked
            failed.append(error)
        finally:
            done.set()

    from pyspark import InheritableThread

    thread = InheritableThread(target=count, daemon=True)
    thread.start()
    try:
        while not done.wait(_LOOK_S):
            if progress is not None:
                progress(_finished(context, group))
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if failed:
        raise SparkFailedError(f"a job failed: {_reason(failed[0])}") from failed[0]
    if progress is not None:
        progress(len(works))
    return together(found)


def _finished(context: SparkContext, group: str) -> int:
    tracker = context.statusTracker()
    total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            stage_info = tracker.getStageInfo(stage)
            total += stage_info.numCompletedTasks if stage_info is not None else 0
    return total


def _reason(error: BaseException) -> str:
    """The line of Spark's pages of text that says what a worker raised."""
    lines = [line.strip() for line in str(error).splitlines()]
    raised = [line for line in lines if ": " in line and line.partition(":")[0].endswith("Error")]
    return (raised or lines or [type(error).__name__])[0]
