"""Plan queries over stores as Spark's driver does, without a Spark: prints the seconds of each step
and the memory of the process in MB.

python -m benchmarks.programs.plan_queries STORES ROUNDS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from analytics.datasource.query.created import columns
from analytics.datasource.query.tables import TABLES
from analytics.datasource.source import RocketMQSource
from benchmarks.process_memory import MOST, memory_bytes

stores, rounds = sys.argv[1], int(sys.argv[2])
schema = columns(TABLES["messages"])
found: dict[str, list[float]] = {}


def timed(name: str, step: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = step()
    found.setdefault(name, []).append(time.perf_counter() - start)
    return result


def batch() -> int:
    return len(RocketMQSource({"path": stores}).reader(schema).partitions())


for _ in range(rounds):
    timed("batch", batch)
stream: Any = RocketMQSource({"path": stores}).streamReader(schema)
limit = stream.getDefaultReadLimit()
start = timed("begin", stream.initialOffset)
end = timed("first", lambda: stream.latestOffset(start, limit))
parts = timed("tasks", lambda: stream.partitions(start, end))
for _ in range(rounds + 2):
    same = timed(
        "unchanged", lambda: (stream.latestOffset(end, limit), stream.reportLatestOffset())
    )
    assert same[0] == end
limited: Any = RocketMQSource({"path": stores, "maxOffsetsPerTrigger": "1000"}).streamReader(schema)
limited.latestOffset(start, limit := limited.getDefaultReadLimit())
for _ in range(rounds):
    timed("limited", lambda: limited.latestOffset(start, limit))
peak = memory_bytes(MOST) / (1 << 20)
position = len(json.dumps(end))
print(json.dumps({"seconds": found, "peak": peak, "position": position, "tasks": len(parts)}))
