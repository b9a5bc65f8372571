"""``offset inspect`` on a store of 100 million messages: whole processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.large_store import make_large_store, write_records
from benchmarks.report import Goal, Row
from benchmarks.run import Run

_QUEUES = 8
_LIMIT_MS = 300


def measure(run: Run) -> Iterator[Row]:
    messages = run.sized(100_000_000, 10_000_000)
    with run.folder() as folder:
        root = folder / "store"
        make_large_store(root, "big", messages, _QUEUES)
        half_way = messages // _QUEUES // 2
        _commit(root, "late", [half_way] * _QUEUES)
        inspect = [*rmqctl(), "-S", str(root), "offset", "inspect"]
        times = run.take_turns(
            "offset inspect",
            {
                "as it is": lambda: seconds_of([*inspect, "late"]),
                "-o json": lambda: seconds_of([*inspect, "late", "-o", "json"]),
            },
            rounds=run.rounds * 3,  # they are short
        )
    for name, goal in (("as it is", Goal(_LIMIT_MS, at_most=True)), ("-o json", None)):
        what = "with lag_bytes (-o json)" if goal is None else "as it is"
        yield Row(
            f"offset inspect, {messages:,} messages, half of them unread, {what}",
            f"{times.median(name) * 1e3:.0f} ms",
            "",
            [seconds * 1e3 for seconds in times.of[name]],
            goal,
            "ms",
            samples=times.of,
        )


def _commit(root: Path, group: str, offsets: list[int]) -> None:
    """Commit offsets of a group, as a Java broker would have written them."""
    table = {f"big@{group}": dict(enumerate(offsets))}
    (root / "config").mkdir(exist_ok=True)
    path = root / "config" / "consumerOffset.json"
    path.write_text(json.dumps({"offsetTable": table}), "utf-8")
    near = [(queue_id, offset - back) for queue_id, offset in enumerate(offsets) for back in (0, 1)]
    write_records(root, "big", _QUEUES, near)
