"""Ten minutes of a stream at 5,000 messages a second: stores come, grow, shrink, are renamed and
made anew, and drivers are killed. Each message comes once, or a failure says what is gone."""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.crash import fast_folder
from tests.support.followed_stream import Follower
from tests.support.steady_writer import Writer

pytestmark = [pytest.mark.spark, pytest.mark.long]
RATE = 5_000
SECONDS = 600
GROUP = "spark"
OPTIONS = {"topicsPattern": "in_.*", "startingOffset": "earliest", "commitGroup": GROUP}


def made(root: Path) -> Path:
    create_store(root, SMALL_STORE)
    return root


def test_each_message_comes_once_over_ten_minutes():
    with ExitStack() as running, fast_folder() as folder:
        began = time.monotonic()
        sent: dict[str, int] = {}
        a, b, c = folder / "a", folder / "b", folder / "c"
        writers: dict[str, Writer] = {}
        done: set[str] = set()

        def write(root: Path, name: str, rate: int) -> None:
            writers[name] = Writer(root, name, rate)
            running.callback(writers[name].kill)

        def follow(**more: str) -> Follower:
            found = Follower(folder, paths, {**OPTIONS, **more})
            running.callback(found.kill)
            return found

        def first_time_after(share: float, what: str) -> bool:
            if what in done or time.monotonic() - began < share * SECONDS:
                return False
            done.add(what)
            return True

        paths = [made(a)]
        write(a, "a", RATE)
        follower = follow()
        restarts = cleaned = 0
        while time.monotonic() - began < SECONDS:
            follower.wait_for_batches(4)
            if first_time_after(0.15, "more queues"):
                assert run("-S", a, "topic", "alter", "in_0", "--queues", "12", "-y").code == 0
            if first_time_after(0.3, "a store comes"):
                paths = [a, made(b)]
                write(b, "b", RATE // 5)
            if first_time_after(0.5, "a store is renamed"):
                sent["b"] = writers.pop("b").stop()
                follower.kill()
                b.rename(c)
                paths = [a, c]
                write(c, "c", RATE // 5)
            if first_time_after(0.75, "a store is made anew"):
                sent["c"] = writers.pop("c").stop()
                _read_to_the_end(folder, follower, paths)
                shutil.rmtree(c)
                made(c)
                write(c, "d", RATE // 5)
                code, errors = Follower(folder, paths, OPTIONS, now=True).end()
                assert code
                assert re.search("not the one that this stream has read|was made anew", errors), (
                    errors
                )
                follower = follow(failOnDataLoss="false")
                follower.wait_for_batches(2)
            before = _begin(a)
            _clean(a)
            cleaned += _begin(a) > before
            follower.kill()
            follower = follow()
            restarts += 1
        for name, writer in writers.items():
            sent[name] = writer.stop()
        _read_to_the_end(folder, follower, paths)
        counts = _counts(folder / "out")
        assert counts == {name: (number, number) for name, number in sent.items()}
        assert restarts > 10
        assert cleaned > 2
        reported = follower.progress()[-1]["sources"][0]["latestOffset"]
        for root, place in zip(paths, reported.values(), strict=True):
            rows = run("-S", root, "lag", "show", GROUP, "-o", "json").json()
            assert sum(row["lag"] for row in rows) == place["unreadMessages"] == 0
            with StoreView.open(root) as view:
                assert place["offset"] == view.log_max_offset()


def _clean(root: Path) -> None:
    """Delete log files that were not written for a while, as retention does."""
    words = ("store", "clean", "--older-than", "45s", "--confirm", root.name, "-y")
    result = run("-S", root, *words)
    assert result.code == 0, result.err


def _begin(root: Path) -> int:
    with StoreView.open(root) as view:
        return view.log_min_offset()


def _read_to_the_end(folder: Path, follower: Follower, paths: list[Path]) -> None:
    """Kill a driver, and let another one read all that is there."""
    follower.kill()
    code, errors = Follower(folder, paths, OPTIONS, now=True).end()
    assert code == 0, errors[-3000:]


def _counts(out: Path) -> dict[str, tuple[int, int]]:
    """Rows and different rows by writer, of the files that Spark's log of the sink names."""
    files: dict[str, str] = {}
    log = out / "_spark_metadata"
    numbers = sorted(
        (path for path in log.iterdir() if not path.name.startswith(".")),
        key=lambda path: (int(path.name.removesuffix(".compact")), path.name),
    )
    for path in numbers:
        for line in path.read_text().splitlines()[1:]:
            entry = json.loads(line)
            files[entry["path"].removeprefix("file://")] = entry["action"]
    bodies = pq.read_table(
        [name for name, action in files.items() if action == "add"], columns=["body"]
    )["body"]
    writers = pc.utf8_slice_codeunits(bodies, 0, 1)
    found = {}
    for name in pc.unique(writers).to_pylist():
        own = bodies.filter(pc.equal(writers, name))
        found[name] = (len(own), pc.count_distinct(own).as_py())
    return found
