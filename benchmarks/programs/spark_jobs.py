"""Jobs on a store in Spark's local[2], with its default settings: prints the seconds of each.

python -m benchmarks.programs.spark_jobs STORE FOLDER ROUNDS JOB...
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame

import pyspark_rocketmq
from benchmarks.measures.spark_source import FIVE
from benchmarks.programs.ready_rows import NAME as READY, ReadyRows

store, folder, rounds, *names = sys.argv[1:]
spark = pyspark_rocketmq.builder().master("local[2]").getOrCreate()
spark.dataSource.register(ReadyRows)


def table(name: str, schema: str = "") -> DataFrame:
    reader = spark.read.format("rocketmq").option("table", name)
    return (reader.schema(schema) if schema else reader).load(store)


def write_parquet() -> None:
    table("messages", FIVE).write.mode("overwrite").parquet(str(Path(folder) / "written"))


def stream_parquet() -> dict[str, float]:
    """The store as a stream of one trigger. Returns what that trigger took, as Spark says: the
    stream's start and end, which are in the job's time, are not in it."""
    with TemporaryDirectory(dir=folder) as place:
        rows = spark.readStream.format("rocketmq").option("table", "messages").schema(FIVE)
        writer = rows.load(store).writeStream.format("parquet").trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{place}/c").start(f"{place}/written")
        query.awaitTermination()
        progress = [each for each in query.recentProgress if each.numInputRows]
    assert sum(each.numInputRows for each in progress) == rows_of_store()
    return {"trigger": sum(each.durationMs["triggerExecution"] for each in progress) / 1e3}


def read_all() -> None:
    table("messages").write.format("noop").mode("overwrite").save()


@cache
def rows_of_store() -> int:
    return table("consumequeue").count()


def count(rows: DataFrame) -> None:
    assert rows.count() == rows_of_store()


def count_ready() -> None:
    ready = spark.read.format(READY).option("table", "messages").option("rows", rows_of_store())
    count(ready.load(store))


JOBS: dict[str, Callable[[], dict[str, float] | None]] = {
    "write": write_parquet,
    "stream": stream_parquet,
    "count messages": lambda: count(table("messages")),
    "count a column": lambda: count(table("messages", "queue_offset bigint")),
    "count ready": count_ready,
    "count consumequeue": lambda: count(table("consumequeue")),
    "read": read_all,
}
found: dict[str, list[float]] = defaultdict(list)
for number in range(int(rounds) + 1):
    for name in names:
        start = time.perf_counter()
        parts = JOBS[name]() or {}
        seconds = {name: time.perf_counter() - start, **parts}
        if number or rounds == "0":  # the first round starts workers and compiles
            for part, value in seconds.items():
                found[part].append(value)
print(json.dumps(found))
spark.stop()
