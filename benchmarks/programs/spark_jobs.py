"""Jobs on a store in Spark's local[2], with its default settings: prints the seconds of each.

python -m benchmarks.programs.spark_jobs STORE FOLDER ROUNDS JOB...
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

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


def read_all() -> None:
    table("messages").write.format("noop").mode("overwrite").save()


@cache
def rows_of_store() -> int:
    return table("consumequeue").count()


def count_ready() -> None:
    ready = spark.read.format(READY).option("table", "messages").option("rows", rows_of_store())
    assert ready.load(store).count() == rows_of_store()


JOBS: dict[str, Callable[[], object]] = {
    "write": write_parquet,
    "count messages": lambda: table("messages").count(),
    "count a column": lambda: table("messages", "queue_offset bigint").count(),
    "count ready": count_ready,
    "count consumequeue": lambda: table("consumequeue").count(),
    "read": read_all,
}
found: dict[str, list[float]] = {name: [] for name in names}
for number in range(int(rounds) + 1):
    for name in names:
        start = time.perf_counter()
        JOBS[name]()
        if number or rounds == "0":  # the first round starts workers and compiles
            found[name].append(time.perf_counter() - start)
print(json.dumps(found))
spark.stop()
