"""Work on Spark's workers: it sends out items and returns the results of a function."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from uuid import uuid4

from analytics.errors import SparkFailedError

if TYPE_CHECKING:
    from pyspark import SparkContext, SparkStageInfo

T = TypeVar("T")
R = TypeVar("R")

_LOOK_S: Final = 0.05
_PATIENCE_S: Final = 8.0
"""An executor takes some seconds to start."""


class SparkEngine:
    """Runs a function in a running Spark, each item as a task of its own."""

    name: Final = "spark"

    def __init__(self, context: SparkContext, tell: Callable[[str], None] | None = None) -> None:
        """``tell`` is called with a sentence if a cluster gives no executor for a while."""
        self._context = context
        self._tell = None if self.is_here else tell

    @property
    def cores(self) -> int:
        """How many tasks run at the same time."""
        return max(1, self._context.defaultParallelism)

    @property
    def is_here(self) -> bool:
        """Whether work is done on this machine, which sees the same files."""
        return str(self._context.master).startswith("local")

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: Callable[[int], None] | None = None,
    ) -> list[R]:
        """Apply a function to each item; the order stays. Function and items are pickled.

        ``progress`` is called with the number of finished items, some times a second. Raises
        SparkFailedError. An
        interruption (Ctrl-C) cancels the job.
        """
        if not items:
            return []
        job = _Job(self._context, function, items)
        patient_until = time.monotonic() + _PATIENCE_S
        try:
            while not job.done.wait(_LOOK_S):
                if self._tell is not None and time.monotonic() > patient_until:
                    self._tell_of_waiting(job)
                if progress is not None:
                    progress(job.finished())
        except BaseException:
            with suppress(Exception):  # the connection may be in the middle of a call
                job.cancel()
            raise
        if job.failure is not None:
            raise SparkFailedError(f"a job failed: {_reason(job.failure)}") from job.failure
        if progress is not None:
            progress(len(items))
        return job.found

    def _tell_of_waiting(self, job: _Job[T, R]) -> None:
        tell, self._tell = self._tell, None
        if tell is not None and not job.has_begun():
            memory = self._context.getConf().get("spark.executor.memory", "1g")
            tell(
                f"{self._context.master} has given us no executor for {_PATIENCE_S:.0f} s, so "
                f"nothing is counted yet: its workers are busy, or none has a core and {memory} of "
                "memory free; end another application there, interrupt this one (Ctrl-C, "
                "--timeout), or use --engine local"
            )


class _Job(Generic[T, R]):
    """A job that runs in a thread of its own, so that progress can be shown."""

    def __init__(
        self, context: SparkContext, function: Callable[[T], R], items: Sequence[T]
    ) -> None:
        from pyspark import InheritableThread

        self.done = threading.Event()
        self.found: list[R] = []
        self.failure: Exception | None = None
        self._context = context
        self._group = f"rmqctl-{uuid4()}"
        InheritableThread(target=self._run, args=(function, items), daemon=True).start()

    def _run(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        try:
            self._context.setJobGroup(self._group, "rmqctl", interruptOnCancel=True)
            self.found = self._context.parallelize(items, len(items)).map(function).collect()
        except Exception as error:  # noqa: BLE001 - raised in the calling thread
            self.failure = error
        finally:
            self.done.set()

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)

    def finished(self) -> int:
        """Number of finished tasks."""
        return sum(stage.numCompletedTasks for stage in self._stages())

    def has_begun(self) -> bool:
        """Whether a task runs or is done."""
        return any(stage.numActiveTasks or stage.numCompletedTasks for stage in self._stages())

    def _stages(self) -> Iterator[SparkStageInfo]:
        tracker = self._context.statusTracker()
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                found = tracker.getStageInfo(stage)
                if found is not None:
                    yield found


def _reason(error: BaseException) -> str:
    """The most informative line of Spark's long error text: a worker's error, else the cause."""
    text = str(error)
    raised = re.findall(r"^\s*(?:[\w.]+\.)?(\w+Error: .+)$", text, re.MULTILINE)
    causes = re.findall(r"^\s*Caused by: (.+)$", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return str((raised[:1] or causes[-1:] or lines[1:2] or lines or [type(error).__name__])[0])
