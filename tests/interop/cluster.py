"""A real name server and a real broker on a store folder, with real clients to talk to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interop.network import own_network
from tests.interop.store_probe import Row, Settings
from tests.support.java import JavaProcess, Release

FOREVER = 0x7FFFFFFFFFFFFFFF
"""Java's Long.MAX_VALUE, the end of a query without an end."""


class Cluster:
    """A running broker; all of it, with its clients, in one JVM with a network of its own."""

    def __init__(self, process: JavaProcess) -> None:
        """Take over a JVM in which a broker has just registered at its name server."""
        self._process = process

    def produce(self, messages: Sequence[Row]) -> list[Row]:
        """Send `java_message`s by a DefaultMQProducer; give the SendResults."""
        return self._ask("produce", messages=messages)

    def consume(
        self,
        topic: str,
        group: str,
        count: int,
        *,
        expression: str = "*",
        deadline: float = 30.0,
        pull_batch_size: int | None = None,
        fails_at: str | None = None,
        stands_at: int | None = None,
    ) -> list[Row]:
        """Run a DefaultMQPushConsumer from the first offset until it was given `count` messages.

        Gives what came, also when that is fewer at the end of `deadline` seconds. The consumer
        has committed its offsets and is gone when this returns. A pull asks for
        `pull_batch_size` messages (RocketMQ's default: 32). The listener throws at the first
        delivery of a body that begins with `fails_at`. Progress in queue 0 is waited for up to
        `stands_at` only, where it cannot come further.
        """
        more: Row = {} if stands_at is None else {"standsAt": stands_at}
        if pull_batch_size is not None:
            more["pullBatchSize"] = pull_batch_size
        if fails_at is not None:
            more["failsAt"] = fails_at
        return self._ask(
            "consume",
            deadline=deadline + 30.0,
            topic=topic,
            group=group,
            count=count,
            expression=expression,
            timeoutMs=round(deadline * 1000),
            **more,
        )

    def topic_stats(self, topic: str) -> list[Row]:
        """Give minOffset and maxOffset of each queue, as mqadmin's topicStatus."""
        return self._ask("topicStats", topic=topic)

    def consume_stats(self, group: str) -> list[Row]:
        """Give the rows of mqadmin's consumerProgress, as in the manifests' `groups`."""
        return self._ask("consumeStats", group=group)

    def query_by_key(
        self, topic: str, key: str, *, max_num: int = 32, begin: int = 0, end: int = FOREVER
    ) -> list[Row]:
        """Give the messages that a client finds by a key."""
        return self._ask("queryByKey", topic=topic, key=key, maxNum=max_num, begin=begin, end=end)

    def stop(self) -> None:
        """Shut the broker down cleanly, as its exit hook does; RocketMQ takes its time (6 s)."""
        self._ask("stop")
        self._process.kill()

    def _ask(self, what: str, *, deadline: float = 60.0, **request: Any) -> list[Row]:
        rows: list[Row] = self._process.ask(what, request, deadline=deadline)
        return rows


@contextmanager
def running_cluster(
    release: Release, root: Path, scratch: Path, settings: Settings | None = None
) -> Iterator[Cluster]:
    """Start name server and broker on a store folder; `settings` are a broker.conf's.

    They are killed at the end, so the store stays as a broker leaves it that died; for a clean
    shutdown there is `Cluster.stop`.
    """
    command = [*own_network(), *release.command("Cluster", home=scratch)]
    with JavaProcess(command, scratch / "cluster.log") as process:
        process.ask("start", {"root": str(root), "settings": dict(settings or {})})
        yield Cluster(process)
