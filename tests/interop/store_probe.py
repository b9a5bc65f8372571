"""What RocketMQ's DefaultMessageStore says about a store folder, and what it appends to it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.java import JavaError, JavaProcess, Release

Row = dict[str, Any]
"""A row with the names of the manifests of tests/golden."""

Settings = Mapping[str, str | int | bool]
"""Settings by RocketMQ's names, such as mappedFileSizeCommitLog; the rest are its defaults."""


def java_message(
    topic: str,
    queue_id: int | None,
    body: bytes,
    properties: Mapping[str, str] | None = None,
    **fields: int | str,
) -> Row:
    """Describe a message to append or send.

    `queue_id` None lets a producer choose. Further fields, for `OpenStore.append` only: flag,
    sysFlag, bornTimestamp, bornHost, storeHost, reconsumeTimes, preparedTransactionOffset.
    """
    row: Row = {"topic": topic, "bodyBase64": base64.b64encode(body).decode(), **fields}
    if queue_id is not None:
        row["queueId"] = queue_id
    if properties:
        row["properties"] = dict(properties)
    return row


class OpenStore:
    """A store folder that a JVM has opened (`load()` and `start()`) for writing."""

    def __init__(self, process: JavaProcess, opened: Row) -> None:
        """Take over a JVM that has just opened a store."""
        self._process = process
        self.min_phy_offset: int = opened["minPhyOffset"]
        self.max_phy_offset: int = opened["maxPhyOffset"]
        self.max_phy_offset_after_load: int = opened["maxPhyOffsetAfterLoad"]

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        return self._process.pid

    def dump(self) -> Row:
        """Give all queues and each unit: minPhyOffset, maxPhyOffset and lists of rows.

        The lists are `queues`, `messages`, `unreadable` and `foreign`, as in the manifests
        (messages without bodyText).
        """
        rows: Row = self._ask("dump")
        return rows

    def offset_by_time(self, questions: Iterable[Row]) -> list[Row]:
        """Answer {topic, queueId, timestamp}: `offset` (5.3: LOWER) and 5.3's `offsetUpper`."""
        return self._questions("offsetByTime", questions)

    def query_by_key(self, questions: Iterable[Row]) -> list[Row]:
        """Answer {topic, key, maxNum, begin, end}: `commitLogOffsets`, `indexPhyOffsets`, ..."""
        return self._questions("queryByKey", questions)

    def pulls(self, questions: Iterable[Row]) -> list[Row]:
        """Answer {topic, queueId, offset, maxNums}, unfiltered: `status`, `queueOffsets`, ..."""
        return self._questions("pulls", questions)

    def append(self, messages: Sequence[Row]) -> list[Row]:
        """Put messages; give status, queueOffset, commitLogOffset, storeSize and more of each."""
        rows: list[Row] = self._ask("append", {"messages": messages})
        assert [row["status"] for row in rows] == ["PUT_OK"] * len(messages)
        return rows

    def kill(self) -> None:
        """End the JVM by SIGKILL: no shutdown, `abort` stays."""
        self._process.kill()

    def _questions(self, what: str, questions: Iterable[Row]) -> list[Row]:
        rows: list[Row] = self._ask(what, {"questions": list(questions)})
        return rows

    def _ask(self, what: str, request: Row | None = None) -> Any:
        return self._process.ask(what, request)


class StoreProbe:
    """Opens store folders, one at a time, in a JVM that it starts when it needs one."""

    def __init__(self, release: Release, scratch: Path) -> None:
        """Remember what to run; `scratch` takes logs."""
        self.release = release
        self._scratch = scratch
        self._process: JavaProcess | None = None

    @contextmanager
    def opened(self, root: Path, settings: Settings | None = None) -> Iterator[OpenStore]:
        """Open a folder, and at the end close it by RocketMQ's clean `shutdown()`.

        Raises JavaError if RocketMQ does not open it. After an exception or a
        `OpenStore.kill` there is no shutdown.
        """
        process = self._running()
        try:
            opened = process.ask("open", {"root": str(root), "settings": dict(settings or {})})
            if not opened["loaded"]:
                raise JavaError(f"load() of {root} gave false; see {process.log}")
            yield OpenStore(process, opened)
            if process.alive:
                process.ask("close")
        except BaseException:
            process.kill()
            raise

    def close(self) -> None:
        """End the JVM."""
        if self._process is not None:
            self._process.kill()

    def _running(self) -> JavaProcess:
        if self._process is None or not self._process.alive:
            command = self.release.command("StoreProbe", home=self._scratch)
            self._process = JavaProcess(command, self._scratch / "store-probe.log")
        return self._process
