"""Spark's data source: its reader alone beside pyarrow and Parquet, and in a Spark of two cores."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.goals import row
from benchmarks.memory_peaks import WORKER, watched
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import HOST, IDS, bodies_of
from storage.format.encode_column import prepare_column
from storage.format.properties import encode_properties
from storage.store import MessageStore

NAME = "spark_source"
FIVE = "topic string, queue_id int, queue_offset bigint, store_timestamp timestamp, body binary"
_MESSAGES = 3_000_000
_QUEUES = 8
_SMALL = 98
_KIB = 1 << 10
_BATCH_ROWS = 10_000
_BATCH_BYTES = 1 << 20
_WORKER_MB = 300


def measure(run: Run) -> Iterator[Row]:
    if find_spec("pyspark") is None:
        raise NotMeasurableError("needs the spark extra: pyspark, pyarrow")
    messages = run.sized(_MESSAGES, _MESSAGES // 10)
    with run.folder() as folder:
        _make_store(folder / "small", messages, _SMALL)
        yield from _reader(run, folder / "small", messages)
        yield from _spark(run, folder / "small", messages)
        _make_store(folder / "kib", messages // 4, _KIB)
        yield _beside_parquet(run, folder / "kib", messages // 4)
    for size in (_SMALL, 512 * _KIB, 4 * _KIB * _KIB - _BATCH_ROWS):
        yield from _memory(run, size)


def _make_store(root: Path, messages: int, size: int) -> None:
    """Messages of one topic as clients send them, with a tag and a key each."""
    MessageStore.create(root)
    each = max(_QUEUES, min(500, _BATCH_BYTES // size))
    now = [1_790_000_000_000]
    bodies = bodies_of(size)
    with MessageStore.open(root, exclusive=True, clock=lambda: now[0]) as store:
        for first in range(0, messages, each):
            now[0] += 7
            count = min(each, messages - first)
            tag = f"tag-{first // each % 8}"
            store.put(
                prepare_column(
                    "orders",
                    [number % _QUEUES for number in range(count)],
                    list(islice(cycle(bodies), count)),
                    born_timestamp=now[0] - 3,
                    born_host=HOST,
                    store_host=HOST,
                    properties=encode_properties({"WAIT": "true", "TAGS": tag}),
                    tags=tag,
                    unique_ids=IDS.take(count, now[0]),
                    keys=[f"order-{first + number}" for number in range(count)],
                )
            )


def _batches(root: Path, table: str, columns: Sequence[str] = ()) -> Iterator[Any]:
    """What the tasks of a query read; without ``columns`` all of them."""
    from pyspark.sql import types

    from analytics.datasource.query.tables import TABLES
    from analytics.datasource.source import RocketMQSource

    text = types.StringType()
    kinds: dict[str, types.DataType] = {
        "string": text,
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "timestamp": types.TimestampType(),
        "binary": types.BinaryType(),
        "array<string>": types.ArrayType(text),
        "map<string,string>": types.MapType(text, text),
    }
    whole = TABLES[table]
    fields = [types.StructField(name, kinds[whole[name]]) for name in columns or whole]
    source = RocketMQSource({"path": str(root), "table": table})
    reader = source.reader(schema=types.StructType(fields))
    for part in reader.partitions():
        yield from reader.read(part)


def _seconds(batches: Callable[[], Iterator[Any]], rows: int) -> float:
    """Processor time of reading them all."""
    start = time.process_time()
    found = sum(batch.num_rows for batch in batches())
    seconds = time.process_time() - start
    assert found == rows
    return seconds


def _reader(run: Run, root: Path, messages: int) -> Iterator[Row]:
    five = [word.split()[0] for word in FIVE.split(", ")]
    units = ["queue_id", "queue_offset", "commitlog_offset", "store_size", "tags_code"]
    for what, table, columns, goal in (
        ("messages, 5 columns", "messages", five, Goal(1, stretch=2)),
        ("messages, all columns", "messages", (), Goal(0.4)),
        ("messages, the offset alone", "messages", ["queue_offset"], None),
        ("consumequeue, without times", "consumequeue", units, None),
        ("consumequeue, all columns", "consumequeue", (), None),
    ):
        found = [
            messages / 1e6 / _seconds(partial(_batches, root, table, columns), messages)
            for _ in range(run.rounds)
        ]
        yield Row(
            f"Spark's source, the reader on one core: {what}, {_SMALL} B",
            f"{median(found):.2f} M rows/s",
            "",
            found,
            goal,
            "M/s",
        )


def _beside_parquet(run: Run, root: Path, messages: int) -> Row:
    import pyarrow as pa
    import pyarrow.parquet as pq

    five = [word.split()[0] for word in FIVE.split(", ")]
    path = root.parent / "rows.parquet"
    table = pa.Table.from_batches(list(_batches(root, "messages", five)))
    pq.write_table(table, path, compression="none")
    del table

    def parquet() -> Iterator[Any]:
        with pq.ParquetFile(path, memory_map=True) as file:
            yield from file.iter_batches(_BATCH_ROWS, columns=five, use_threads=False)

    times = run.take_turns(
        "Parquet",
        {
            "ours": lambda: _seconds(lambda: _batches(root, "messages", five), messages),
            "parquet": lambda: _seconds(parquet, messages),
        },
        short=True,
    )
    sides = tuple(f"{messages / 1e6 / times.median(name):.2f} M/s" for name in ("ours", "parquet"))
    return row(
        "source/Parquet",
        (sides[0], sides[1]),
        times.ratios("parquet", "ours"),
        detail="5 columns, one core",
        samples=times.of,
    )


def _spark(run: Run, root: Path, messages: int) -> Iterator[Row]:
    jobs = [
        "write",
        "stream",
        "count messages",
        "count ready",
        "count a column",
        "count consumequeue",
    ]
    found = json.loads(_jobs(root, run.rounds, jobs))
    millions = f"{messages / 1e6:g} M messages of {_SMALL} B"
    yield Row(
        f"Spark, local[2]: 5 columns of {millions} into Parquet",
        f"{median(found['write']):.1f} s",
        "",
        found["write"],
        Goal(6, at_most=True),
        "s",
    )
    for job, what, most in (
        ("trigger", "a trigger of a stream", Goal(1.15, at_most=True)),
        ("stream", "a stream of one trigger, with its start and its end,", None),
    ):
        yield Row(
            f"Spark, local[2]: {what} vs a batch, 5 columns of {millions} into Parquet",
            f"{median(found[job]):.1f} s",
            f"{median(found['write']):.1f} s",
            [ours / other for ours, other in zip(found[job], found["write"], strict=True)],
            most,
            samples=found,
        )
    units = found["count consumequeue"]
    for job, what, goal in (
        ("count messages", "count() of messages", Goal(2, at_most=True)),
        ("count ready", "count() of as many ready rows, which need no reading,", None),
        ("count a column", "count() of messages with one column", None),
    ):
        yield Row(
            f"Spark, local[2]: {what} vs of consumequeue, {millions}",
            f"{median(found[job]):.1f} s",
            f"{median(units):.1f} s",
            [ours / other for ours, other in zip(found[job], units, strict=True)],
            goal,
            samples=found,
        )


def _jobs(root: Path, rounds: int, jobs: Sequence[str]) -> bytes:
    return watched(_command(root, rounds, jobs), "the driver").stdout


def _command(root: Path, rounds: int, jobs: Sequence[str]) -> list[str]:
    program = [sys.executable, "-m", "benchmarks.programs.spark_jobs"]
    return [*program, str(root), str(root.parent), str(rounds), *jobs]


def _memory(run: Run, size: int) -> Iterator[Row]:
    messages = max(64, run.sized(1 << 30, 1 << 28) // (size + 200))
    with run.folder() as folder:
        _make_store(folder / "store", messages, size)
        found = watched(_command(folder / "store", 0, ["read"]), "the driver")
    peak = found.peaks[WORKER]
    shown = f"{size} B" if size < _KIB else f"{size / _KIB:,.0f} KiB"
    yield Row(
        f"anonymous memory of Spark's Python workers, all columns of bodies of {shown}",
        f"{peak:.0f} MB",
        f"in {found.seconds:.1f} s",
        [peak],
        Goal(_WORKER_MB, at_most=True),
        "MB",
    )
