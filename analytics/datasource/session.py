"""Sessions whose workers find the data source.

Spark starts its workers with ``python3`` of the PATH, unless PYSPARK_PYTHON names another one
before the session is made. With the Python of an environment that is not activated the workers are
those of the system: they lack rmqctl, and Spark says only DATA_SOURCE_NOT_FOUND.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PYTHON: Final = "PYSPARK_PYTHON"
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_IMPORT_S: Final = 60


class WorkerError(Exception):
    """The workers of a session cannot load the data source."""


def builder() -> SparkSession.Builder:
    """Give ``SparkSession.builder`` for a session that finds the source: with this Python for the
    workers, unless PYSPARK_PYTHON names one, and with filters that are pushed down.

    Raises WorkerError if a session is running whose workers cannot load it.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkContext._active_spark_context
    if running is None:
        os.environ.setdefault(_PYTHON, sys.executable)
    elif str(running.master).startswith("local"):
        check_python(running.pythonExec)
    return SparkSession.builder.config(_PUSHDOWN, "true")


def register(spark: SparkSession) -> None:
    """Register the source in a session that exists.

    Raises WorkerError if its workers cannot load it, as far as this machine shows that.
    """
    from .source import RocketMQSource

    context = getattr(spark, "sparkContext", None)
    python = getattr(context, "pythonExec", None)
    if python is not None:
        check_python(python, _shipped(context))
    spark.dataSource.register(RocketMQSource)


def _shipped(context: Any) -> list[str]:
    """The files of ``addPyFile`` and ``--py-files``, which workers have on their path."""
    from pyspark import SparkFiles

    root = SparkFiles.getRootDirectory()
    return [os.path.join(root, name) for name in getattr(context, "_python_includes", ())]  # noqa: PTH118


def check_python(python: str, shipped: Sequence[str] = ()) -> None:
    """Raise WorkerError if a Python that workers run on cannot load the source here, with the
    files that are ``shipped`` to them."""
    if os.path.realpath(python) == os.path.realpath(sys.executable) == python:
        return
    code = "import analytics.datasource, pyspark, pyarrow"
    path = os.pathsep.join([*shipped, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            [python, "-c", code],
            capture_output=True,
            text=True,
            timeout=_IMPORT_S,
            check=False,
            env={**os.environ, "PYTHONPATH": path} if path else None,
        )
        reason = done.stderr.strip().rpartition("\n")[2] if done.returncode else None
    except OSError as error:
        reason = error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return
    if reason is not None:
        raise WorkerError(
            f"the workers of this session run {python!r}, which cannot load rmqctl ({reason}). "
            f"Set {_PYTHON}={sys.executable} before the session is made, or make it with "
            "pyspark_rocketmq.builder().getOrCreate()"
        )
