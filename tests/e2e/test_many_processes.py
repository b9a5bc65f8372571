"""Four processes produce, two consume, one checks; one of them dies: nothing is lost or doubled.

Everything is the real program in processes of its own, on one folder.
"""

import json
import random
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.store import MessageStore
from tests.support.cli import call, start

PRODUCERS = 4
EACH = 1500
SIZES = StoreConfig(
    mapped_file_size_commit_log=256 << 10,
    mapped_file_size_consume_queue=400 * 20,
    max_hash_slot_num=500,
    max_index_num=2000,
)
"""Small files, so that each process meets rolls of the log, the queues and the index."""

Process = subprocess.Popen[bytes]


class Producer:
    """``rmqctl produce T -o jsonl`` on a pipe: what it prints has been acknowledged."""

    def __init__(self, root: Path, name: str, stack: ExitStack, leave: threading.Event) -> None:
        """It stays in until ``leave`` is set: one that is killed is not to be the last one."""
        self.name = name
        self._leave = leave
        self.acknowledged: list[tuple[int, int]] = []
        self.process: Process = start("produce", "T", "-S", root, "-o", "jsonl")
        stack.callback(end, self.process)
        self._threads = [
            threading.Thread(target=self._feed, daemon=True),
            threading.Thread(target=self._listen, daemon=True),
        ]
        self.halfway = threading.Event()

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()

    def _feed(self) -> None:
        assert self.process.stdin is not None
        try:
            for number in range(EACH):
                self.process.stdin.write(f"{self.name}-{number}\n".encode())
                if number % 50 == 0:
                    self.process.stdin.flush()
            self.process.stdin.flush()
            assert self._leave.wait(120)
            self.process.stdin.close()
        except (BrokenPipeError, ValueError):
            pass  # it was killed, or the test is over

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                break  # killed while it printed
            row = json.loads(line)
            assert row["send_status"] == "SEND_OK"
            self.acknowledged.append((row["queue_id"], row["queue_offset"]))
            if len(self.acknowledged) == EACH // 3:
                self.halfway.set()
        self.halfway.set()


def end(process: Process) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()


def rows_of(consumer: Process) -> Iterator[dict[str, object]]:
    assert consumer.stdout is not None
    for line in consumer.stdout:
        yield json.loads(line)


@pytest.mark.crash
@pytest.mark.parametrize(
    "killed",
    [
        pytest.param(False, id="all live", marks=pytest.mark.long),
        pytest.param(True, id="one is killed"),
    ],
)
def test_nothing_is_lost_or_doubled_and_fsck_stays_clean(tmp_path: Path, killed: bool) -> None:
    root = tmp_path / "s"
    MessageStore.create(root, SIZES)
    assert call("topic", "create", "T", "--queues", "4", "-S", root).code == 0
    verdicts: list[tuple[int, str]] = []
    stop = threading.Event()

    def check() -> None:
        while not stop.is_set():
            found = call("store", "fsck", "-S", root, "-o", "json")
            verdicts.append((found.code, found.out + found.err))

    with ExitStack() as stack:
        consumers = [
            start("consume", "T", "-S", root, "--offset", "start", "-F", "-o", "jsonl")
            for _ in range(2)
        ]
        for consumer in consumers:
            stack.callback(end, consumer)
        leave = threading.Event()
        producers = [Producer(root, f"p{number}", stack, leave) for number in range(PRODUCERS)]
        stack.callback(leave.set)
        checker = threading.Thread(target=check)
        checker.start()
        stack.callback(checker.join)
        stack.callback(stop.set)
        for producer in producers:
            producer.begin()
        victim = random.Random(f"{killed}").choice(producers)
        if killed:
            assert victim.halfway.wait(60)
            victim.process.kill()
            victim.process.wait()  # a dying process is still in, so no other is the last one out
        leave.set()
        for producer in producers:
            producer.join()
            code = producer.process.wait()
            assert code == 0 or (killed and producer is victim)
            if not (killed and producer is victim):
                assert len(producer.acknowledged) == EACH

        everything = {place for producer in producers for place in producer.acknowledged}
        stored = json.loads(call("topic", "queues", "T", "-S", root, "-o", "json").out)
        total = sum(row["count"] for row in stored)
        assert len(everything) == sum(len(producer.acknowledged) for producer in producers)
        assert total == len(everything) or (killed and total > len(everything))
        for consumer in consumers:
            seen: dict[int, list[int]] = {}
            bodies = set()
            rows = rows_of(consumer)
            for _ in range(total):
                row = next(rows)
                seen.setdefault(int(str(row["queue_id"])), []).append(int(str(row["queue_offset"])))
                bodies.add(row["body"])
            for offsets in seen.values():
                assert offsets == list(range(len(offsets)))  # dense, in order, none twice
            assert len(bodies) == total
            assert everything <= {(q, o) for q, offsets in seen.items() for o in offsets}

    assert verdicts
    assert [text for code, text in verdicts if code != 0] == []
    final = call("store", "fsck", "-S", root, "-o", "json")
    assert final.code == 0
    assert final.json()["findings"] == []
