"""Another process with a broker and clients, that a test controls.

with broker_puppet() as puppet:
    puppet.call("open", root=str(root))
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest
from broker.embedded.broker import EmbeddedBroker
from storage.errors import StoreBrokenError
from storage.format.message import Message, MessageQueue
from storage.store import MessageStore
from tests.support.faulty_fs import STORES
from tests.support.puppet import Puppet, obey
from tests.support.recording_client import RecordingClient, consumer, heartbeat
from tests.support.watched_fs import Instant, WatchedFileSystem


def broker_puppet(root: Path) -> Puppet:
    """Start the process and have it open the store."""
    return Puppet("tests.support.broker_puppet").begin("open", root=str(root))


class FailsOnce(WatchedFileSystem):
    """Fails one call that changes files, once ``fails`` is set: no descriptor is left."""

    def __init__(self) -> None:
        super().__init__(self._fail)
        self.fails = False

    def _fail(self, instant: Instant) -> None:
        if self.fails and instant.kind not in STORES:
            self.fails = False
            raise OSError(errno.EIO, os.strerror(errno.EIO), instant.what)


class _Commands:
    """The puppet's end. Each method is a command."""

    def __init__(self) -> None:
        self._clients: dict[str, RecordingClient] = {}

    def open(self, root: str) -> None:
        self._broker = EmbeddedBroker.open(root)

    def open_on_failing_disk(self, root: str) -> None:
        self._fs = FailsOnce()
        self._broker = EmbeddedBroker(MessageStore.open(root, fs=self._fs))

    def fail_once(self, topic: str) -> str:
        """Have one write fail, by a message to a topic that is new; gives the error's text."""
        self._fs.fails = True
        try:
            self.send(topic, "x")
        except StoreBrokenError as error:
            return str(error)
        finally:
            self._fs.fails = False
        raise AssertionError("the write went well")

    def join(self, client_id: str, group: str, topics: list[str] | None = None) -> None:
        if client_id not in self._clients:
            self._clients[client_id] = RecordingClient()
            self._broker.connect(client_id, self._clients[client_id])
        self._broker.heartbeat(heartbeat(client_id, consumer(group, *topics or ["T"])))

    def produce_in(self, client_id: str, group: str) -> None:
        self._clients[client_id] = RecordingClient()
        self._broker.connect(client_id, self._clients[client_id])
        self._broker.heartbeat(heartbeat(client_id, producers=(group,)))

    def ids(self, group: str) -> list[str]:
        return self._broker.consumer_ids(group)

    def was_called(self, client_id: str, call: list[Any], times: int = 1) -> bool:
        return self._clients[client_id].wait_for(*call, times=times)

    def was_asked_about(self, client_id: str) -> list[Any]:
        """Wait for a question about a half message."""
        client = self._clients[client_id]
        client.wait_until(lambda calls: any(call[0] == "check" for call in calls))
        (_, request), *_ = client.calls
        message = request.message
        return [
            request.producer_group,
            request.commitlog_offset,
            message.topic,
            message.body.decode(),
            message.properties,
        ]

    def lock(self, group: str, client_id: str, queues: list[int]) -> list[int]:
        wanted = [MessageQueue("T", "broker-a", queue_id) for queue_id in queues]
        return sorted(q.queue_id for q in self._broker.lock_queues(group, client_id, wanted))

    def send(self, topic: str, body: str, tags: str | None = None) -> None:
        self._broker.send(Message(topic, body.encode(), tags=tags))

    def pull_with_progress(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        commit = OffsetCommit(topic, queue_id, offset)
        self._broker.pull(PullRequest(group, topic, queue_id, offset, commit=commit))

    def move_progress(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self._broker.progress.move(group, {(topic, queue_id): offset})

    def serve(self) -> None:
        self._broker.start_services()

    def is_elected(self) -> bool:
        return self._broker.elected

    def leave(self, client_id: str) -> None:
        self._broker.disconnect(client_id)

    def close(self) -> None:
        self._broker.close()


if __name__ == "__main__":
    obey(_Commands())
