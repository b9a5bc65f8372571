"""A message log over Redis streams, as a careful user of Redis would write it.

A server of its own on a unix socket, append-only file synced every second, no snapshots, no rewrite
while it is measured. A stream a queue, whose ids are the queue offsets, and a set of places for
each key. The commands of one call go through one pipeline without MULTI, which is faster than our
all-or-nothing.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from benchmarks.run import NotMeasurableError
from benchmarks.workload import HOST, IDS, QUEUES, TAG, TOPIC, Column
from storage.format.encode import MessageInner
from storage.store import now_ms

from .envelope import body_of, envelope
from .redis_server import server_program

_PATIENCE_S = 10.0


class RedisLog:
    """Puts messages with one round trip a call, and pulls them."""

    def __init__(self, folder: Path) -> None:
        socket = folder / "redis.sock"
        options = {
            "port": "0",
            "unixsocket": str(socket),
            "dir": str(folder),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "auto-aof-rewrite-percentage": "0",
            "save": "",
            "loglevel": "warning",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        self._server = subprocess.Popen(
            [server_program(), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._client: Any = redis.Redis(unix_socket_path=str(socket), protocol=2)
        try:
            self._wait_until_up()
        except BaseException:
            self.close()
            raise
        self._next: Counter[int] = Counter()

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self._client.ping()
            except redis.exceptions.ConnectionError:
                if time.monotonic() > deadline or self._server.poll() is not None:
                    raise NotMeasurableError("redis-server does not start") from None
                time.sleep(0.005)
            else:
                return

    def put(self, message: MessageInner) -> None:
        """Store one message and its keys in one round trip."""
        pipeline = self._client.pipeline(transaction=False)
        queue_id = message.queue_id
        number = self._next[queue_id] = self._next[queue_id] + 1
        place = b"%d-%d" % (queue_id, number)
        pipeline.xadd(f"{message.topic}:{queue_id}", {b"m": envelope(message)}, id=f"0-{number}")
        for key in message.keys:
            pipeline.sadd(f"{message.topic}#{key}", place)
        pipeline.execute()

    def put_column(self, column: Column) -> None:
        """Store a batch in one pipeline; ids and properties are made here, as in ours."""
        now = now_ms()
        pipeline = self._client.pipeline(transaction=False)
        ids = IDS.take(len(column.bodies), now)
        streams = [f"{TOPIC}:{queue_id}" for queue_id in range(QUEUES)]
        for body, queue_id, key, unique_id in zip(
            column.bodies, column.queue_ids, column.keys, ids, strict=True
        ):
            number = self._next[queue_id] = self._next[queue_id] + 1
            properties = b"WAIT\1true\2TAGS\1TagA\2UNIQ_KEY\1%b\2KEYS\1%b" % (
                unique_id,
                key.encode(),
            )
            packed = envelope(
                MessageInner(TOPIC, queue_id, body, properties, now, HOST, HOST, tags=TAG)
            )
            place = b"%d-%d" % (queue_id, number)
            pipeline.xadd(streams[queue_id], {b"m": packed}, id=f"0-{number}")
            pipeline.sadd(f"{TOPIC}#{unique_id.decode()}", place)
            pipeline.sadd(f"{TOPIC}#{key}", place)
        pipeline.execute()

    def pull(self, queue_id: int, queue_offset: int, count: int) -> list[bytes]:
        """Up to ``count`` packed messages of a queue from an offset on."""
        entries = self._client.xrange(f"{TOPIC}:{queue_id}", f"0-{queue_offset + 1}", count=count)
        return [fields[b"m"] for _, fields in entries]

    def bodies(self) -> Iterator[bytes]:
        """Read all queues to their ends."""
        for queue_id in range(QUEUES):
            offset = 0
            while entries := self.pull(queue_id, offset, 32):
                yield from map(body_of, entries)
                offset += len(entries)

    def close(self) -> None:
        """End the server."""
        self._client.close()
        self._server.kill()
        self._server.wait()
