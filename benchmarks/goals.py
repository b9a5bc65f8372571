"""The goals against peers, each stated once: measures take them from here, reports list all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .report import Goal, Row


@dataclass(frozen=True)
class Target:
    """One goal: what is compared with what, how far it should go."""

    key: str
    what: str
    goal: Goal


def _least(key: str, what: str, value: float, stretch: float | None = None) -> Target:
    return Target(key, what, Goal(value, stretch=stretch))


def _most(key: str, what: str, value: float, stretch: float | None = None) -> Target:
    return Target(key, what, Goal(value, at_most=True, stretch=stretch))


TARGETS = (
    _least("batch/memcpy", "batch of 1,000 x 1 KiB, share of the memcpy limit", 0.40, 0.55),
    _least("batch/lmdb", "batch of 1,000 x 1 KiB vs lmdb", 2.5),
    _least("batch/SQLite", "batch of 1,000 x 1 KiB vs SQLite", 6),
    _least("batch/Redis", "batch of 1,000 x 1 KiB vs a Redis pipeline", 6),
    _least("exclusive/lmdb", "single append, exclusive, vs lmdb", 1.2),
    _least("exclusive/SQLite", "single append, exclusive, vs SQLite", 6),
    _least("exclusive/Redis", "single append, exclusive, vs Redis", 7),
    _least("exclusive/persist-queue", "single append, exclusive, vs persist-queue", 70),
    _least("exclusive/litequeue", "single append, exclusive, vs litequeue", 8),
    _least("shared/lmdb", "single append, shared, vs lmdb", 0.8, 1.2),
    _least("shared/SQLite", "single append, shared, vs SQLite", 4, 6),
    _least("shared/Redis", "single append, shared, vs Redis", 5, 7),
    _least("java/batch-100", "batches of 100 vs Java, packed and put by putMessages", 2, 3),
    _least("java/batch-1000", "batches of 1,000 vs Java, packed and put by putMessages", 2, 3),
    _least("java/exclusive", "single append, exclusive, vs Java putMessage", 1.5, 2),
    _least("java/shared", "single append, shared, vs Java putMessage", 0.4, 1.0),
    _least("java/durable", "durable single append vs Java SYNC_FLUSH", 1.0),
    _least("java/pull", "pulls of 32 with decoded messages vs Java", 1.0, 1.3),
    _most("java/query", "query by key, p50, vs Java", 1.0),
    _most("java/by-time", "offset by time, p50, vs Java", 1.2),
    _most("java/recovery", "recovery of 1 GiB after kill -9 vs Java", 1.0, 0.6),
    _least("broker/send", "sync send, embedded, vs Java client and broker on loopback", 15),
    _least("broker/batch", "send of batches of 100, embedded, vs Java client and broker", 8),
    _least("broker/drain", "push consumer draining a backlog, defaults, vs Java's", 4, 5),
    _most("broker/latency-p50", "append to listener in another process, p50, vs Java's", 0.25),
    _most("broker/latency-p99", "append to listener in another process, p99, vs Java's", 0.5),
    _least("broker/cold", "empty folder to first acknowledged message, cold, vs Java", 25),
    _most("durable/device", "durable append, p50, vs bare pwrite + fdatasync", 1.6),
    _least("durable/threads", "durable appends of 16 threads vs 1", 2.5),
    _least("pull/SQLite", "pulls of 32 with bodies vs SQLite", 1.5),
    _least("pull/Redis", "pulls of 32 with bodies vs Redis", 5),
    _least("shell/sqlite3", "produce of lines vs the program sqlite3, one index", 1.5, 2.5),
    _least("exchange/produce jsonl", "produce --input jsonl vs json.loads a line", 1.0, 1.5),
    _least("exchange/produce csv", "produce --input csv vs json.loads a line", 1.0, 1.5),
    _least("exchange/import", "message import vs json.loads a line", 1.4),
    _least("exchange/export", "message export vs json.loads a line", 1.7),
    _least("shell/consume", "consume of lines vs the program sqlite3", 0.8, 1),
    _least("rows/jsonl", "consume -o jsonl, all fields, vs jq -c . of its output", 8, 12),
    _least("rows/csv", "consume -o csv vs sqlite3 -csv, by the byte", 0.5, 1),
    _least("rows/tsv", "consume -o tsv vs sqlite3 -csv, by the byte", 0.5, 1),
    _least("rows/yaml", "consume -o yaml vs our -o jsonl", 0.25),
    _least("rows/columns", "consume -o jsonl --columns queue_offset,body vs all fields", 2.5),
    _least("rows/line", r"consume -f '%s\n' vs consume", 0.9),
    _least("rows/five", "consume -f with five fields vs consume", 0.4),
    _least("rows/json-path", "consume --json-path vs jq select over the bodies", 3, 5),
    _least("rows/group", "consume -g of lines vs consume", 0.5),
    _least("source/Parquet", "Spark's source, 1 KiB bodies, vs pyarrow from plain Parquet", 0.5, 1),
    _least("mqadmin/lag show", "lag show vs mqadmin consumerProgress", 6),
    _least("mqadmin/message query", "message query vs mqadmin queryMsgByKey", 6),
    _least("mqadmin/resetOffsetByTime", "resetOffsetByTime vs mqadmin", 6),
    _least("mqadmin/topic queues", "topic queues vs mqadmin topicStatus", 6),
)

BY_KEY = {target.key: target for target in TARGETS}


def row(
    key: str,
    sides: tuple[str, str],
    ratios: Sequence[float],
    *,
    unit: str = "x",
    detail: str = "",
    samples: Mapping[str, list[float]] | None = None,
) -> Row:
    """The row that answers a goal; ``sides`` are ours and the peer's, ``detail`` has the amount."""
    target = BY_KEY[key]
    what = f"{target.what}{', ' if detail else ''}{detail}"
    return Row(what, *sides, ratios, target.goal, unit, dict(samples or {}), key)
