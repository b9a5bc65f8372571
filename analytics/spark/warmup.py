"""Making the class-data archive: Spark's classes as one file that a JVM maps instead of loading.

A session does the work of reports, and writes at its end the classes that it has loaded (AppCDS).
Java checks by itself whether an archive fits; a missing or unfitting one is ignored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analytics.engines.spark import SparkEngine
from analytics.errors import AnalyticsError, SparkFailedError

from .home import cache_folder, remove_unused, spark_home
from .java import find_java
from .session import SparkSession


class Warmed(NamedTuple):
    """The archive that was made."""

    path: Path
    size: int
    """Bytes."""
    java: str
    removed: Sequence[Path]
    """Homes that are unused."""


def warm_up(tell: Callable[[str], None] | None = None) -> Warmed:
    """Make the archive for this user, PySpark and Java; takes half a minute, and 100 to 200 MB.

    Raises AnalyticsError, SparkFailedError too, and the errors of starting a session; an older
    archive stays then.
    """
    java = find_java()
    try:
        home = spark_home(java)
    except OSError as error:
        what = f"{cache_folder()}, where the archive would be kept, cannot be written"
        raise AnalyticsError(f"{what}: {error.strerror or error}") from error
    archive = home.archive
    new = archive.with_name(f"{archive.name}.{os.getpid()}.new")
    options = (f"-XX:ArchiveClassesAtExit={new}",)
    try:
        with SparkSession("local[2]", jvm=options, orderly=True) as session:
            _train(session)
            if tell is not None:
                tell("writing the archive")
        if not new.is_file():
            raise SparkFailedError("Java wrote no archive")
        new.replace(archive)
    finally:
        new.unlink(missing_ok=True)
    removed = remove_unused(home, time.time())
    description = f"Java {java.version} ({java.origin})"
    return Warmed(archive, archive.stat().st_size, description, removed)


def _train(session: SparkSession) -> None:
    """The work of reports and the data source: tasks with Python workers, progress, SQL, Arrow."""
    from pyspark.sql import SparkSession as Sql

    engine = SparkEngine(session.context)
    for _ in range(3):
        engine.map(_square, range(4), lambda _: None)
    sql = Sql(session.context)
    sql.range(10).selectExpr("id % 3 as k", "id").groupBy("k").sum("id").collect()
    sql.range(10).mapInArrow(_same, "id bigint").count()
    sql.range(10).toArrow()


def _square(number: int) -> int:
    return number * number


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    return batches
