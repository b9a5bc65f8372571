"""Writers that die by SIGKILL, and what must be true of their store."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from storage.config import StoreConfig
from storage.readonly import StoreView
from storage.results import PutMessageResult
from storage.tools.fsck.findings import AS_SENT
from tests.support.oracle import Found
from tests.support.samples import Sample
from tests.support.slim import Slim


class Put(NamedTuple):
    """One call of ``MessageStore.put``."""

    samples: list[Sample]
    whole: bool = False


class Acknowledged(NamedTuple):
    """A sample and where the store said it is."""

    sample: Sample
    commitlog_offset: int
    queue_offset: int


Answers = dict[int, tuple[list[int], list[int]]]
"""By number of the put: where its messages are in the log, and in their queues."""
Acknowledge = Callable[[int, PutMessageResult], None]
"""Called with the number of the put and its result once it has returned."""


def die() -> NoReturn:
    """SIGKILL to this very process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Child:
    """A forked process that acknowledges puts over a pipe. The parent must have no threads."""

    def __init__(self, run: Callable[[Acknowledge], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            code = 1
            try:
                run(lambda number, result: acknowledge_to(writing, number, result))
                code = 0
            except BaseException as error:  # noqa: BLE001 - it must not run on as the parent
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(code)
        os.close(writing)
        self.pipe = reading
        self._rest = b""
        self.answers_come = True

    def wait(self) -> tuple[bool, Answers]:
        """Wait for its end: whether it was killed, and its acknowledgements by put number."""
        answers: Answers = {}
        while self.answers_come:
            answers |= self.read()
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or status == 0, f"the writer ended with status {status}"
        return killed, answers

    def read(self) -> Answers:
        """Wait for some more acknowledgements; none once it has ended."""
        chunk = os.read(self.pipe, 1 << 16)
        self.answers_come = bool(chunk)
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        return {number: (places, offsets) for number, places, offsets in map(json.loads, lines)}

    def kill_within(self, seconds: float) -> None:
        """SIGKILL after that time, or before if it ends."""
        with select_on(self.pid) as ended:
            ended(seconds)
        os.kill(self.pid, signal.SIGKILL)


@contextmanager
def idle_child() -> Iterator[None]:
    """A forked process that does nothing, from when it has begun until it is killed after this."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, b"!")
        while True:
            signal.pause()
    try:
        assert os.read(read_end, 1) == b"!"
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read_end)
        os.close(write_end)


@contextmanager
def select_on(pid: int) -> Iterator[Callable[[float], bool]]:
    """A function that waits for the process to end, so many seconds at most."""
    fd = os.pidfd_open(pid)
    try:
        yield lambda seconds: bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


def acknowledge_to(fd: int, number: int, result: PutMessageResult) -> None:
    places = [int(place) for place in result.commitlog_offsets]
    offsets = [int(offset) for offset in result.queue_offsets]
    os.write(fd, (json.dumps([number, places, offsets]) + "\n").encode())


def missing(found: Found, acknowledged: list[Acknowledged]) -> list[str]:
    """What was acknowledged and is not there, exactly as sent, exactly where it was said to be."""
    records = {record.offset: record for record in found.records}
    problems = []
    for sample, place, offset in acknowledged:
        record = records.get(place)
        if record is None:
            problems.append(f"{sample.id}, acknowledged at {place}, is not there")
            continue
        properties = dict(record.properties)
        properties.pop("INNER_MULTI_QUEUE_OFFSET", None)  # written by the store
        is_there = (
            record.id, record.topic, record.queue_id, record.queue_offset,
            record.body, properties,
        )  # fmt: skip
        if is_there != (
            sample.id, sample.topic, sample.queue_id, offset, sample.body(), sample.properties(),
        ):  # fmt: skip
            problems.append(f"{sample.id}, acknowledged at {place}: {record}")
    return problems


def acknowledged_of(puts: list[Put], answers: Answers) -> list[Acknowledged]:
    """The messages of those puts that returned."""
    return [
        Acknowledged(sample, place, offset)
        for number, (places, offsets) in answers.items()
        for sample, place, offset in zip(puts[number].samples, places, offsets, strict=True)
    ]


def begun(puts: list[Put], answers: Answers) -> set[str]:
    """Ids of the messages that may be there: puts come one after the other, so at most the one
    after the last acknowledged had begun."""
    return {sample.id for put in puts[: max(answers, default=-1) + 2] for sample in put.samples}


def inspect(
    root: Path, config: StoreConfig, *, torn: bool = False, with_fsck: bool = True
) -> Found:
    """A store that was closed cleanly, with every check there is: ours and rmqctl's own.

    The latter takes 20 ms and more, and has no ``torn`` stores.
    """
    found = Found(root, config, torn=torn)
    found.check_clean_end()
    if with_fsck and not torn:
        from storage.tools.fsck.fsck import fsck  # NumPy: 100 ms that few need

        with StoreView.open(root, config) as view:
            findings = fsck(view).findings
        found.problems += [
            f"fsck: {finding}" for finding in findings if finding.code not in AS_SENT
        ]
    return found


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder in memory where there is one: these tests make thousands of files."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="rmqctl-crash-", dir=place))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


_FEW: Final = 12
"""One case in so many, or fewer, are few cases."""


def shared_out(function: str, every: int, **arguments: Any) -> list[Any]:
    """What is found in all cases, or in each ``every``-th, in a fast folder.

    Two processes share many cases. Few cases have one process: what it does before the first case
    costs more than they do. No case may have failed.
    """
    processes = 2 if every < _FEW else 1
    with fast_folder() as folder:
        found = Slim.results(
            [
                Slim(
                    f"tests.support.{function}",
                    folder=str(folder),
                    shard=shard * every,
                    shards=processes * every,
                    **arguments,
                )
                for shard in range(processes)
            ]
        )
    failures = [failure for one in found for failure in one["failures"]]
    assert not failures, json.dumps(failures[:20], indent=1)
    return found
