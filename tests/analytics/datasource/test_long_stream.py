"""Ten minutes of a stream at 5,000 messages a second: stores come, grow, shrink, are renamed and
made anew, and drivers are killed. Each message comes once, or a failure says what is gone."""

from __future__ import annotations

import shutil
import time
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
OPTIONS = {"topicsPattern": "in_.*", "startingOffset": "earliest"}


def made(root: Path) -> Path:
    create_store(root, SMALL_STORE)
    return root


def test_each_message_comes_once_over_ten_minutes():
    with fast_folder() as folder:
        began = time.monotonic()
        sent: dict[str, int] = {}
        a, b, c = folder / "a", folder / "b", folder / "c"
        paths = [made(a)]
        writers = {"a": Writer(a, "a", RATE)}
        follower = Follower(folder, paths, OPTIONS)
        done: set[str] = set()

        def first_time_after(share: float, what: str) -> bool:
            if what in done or time.monotonic() - began < share * SECONDS:
                return False
            done.add(what)
            return True

        restarts = cleaned = 0
        while time.monotonic() - began < SECONDS:
            follower.wait_for_batches(4)
            if first_time_after(0.15, "more queues"):
                assert run("-S", a, "topic", "alter", "in_0", "--queues", "12", "-y").code == 0
            if first_time_after(0.3, "a store comes"):
                paths = [a, made(b)]
                writers["b"] = Writer(b, "b", RATE // 5)
            if first_time_after(0.5, "a store is renamed"):
                sent["b"] = writers.pop("b").stop()
                follower.kill()
                b.rename(c)
                paths = [a, c]
                writers["c"] = Writer(c, "c", RATE // 5)
            if first_time_after(0.75, "a store is made anew"):
                sent["c"] = writers.pop("c").stop()
                _read_to_the_end(folder, follower, paths)
                shutil.rmtree(c)
                made(c)
                writers["d"] = Writer(c, "d", RATE // 5)
                strict = Follower(folder, paths, OPTIONS, now=True)
                code, errors = strict.end()
                assert code
                assert "is not the one that this stream has read" in errors
                follower = Follower(folder, paths, {**OPTIONS, "failOnDataLoss": "false"})
                follower.wait_for_batches(2)
            before = _begin(a)
            assert run(
                "-S", a, "store", "clean", "--older-than", "45s", "--confirm", "a", "-y"
            ).code in (0, 3)
            cleaned += _begin(a) > before
            follower.kill()
            follower = Follower(folder, paths, OPTIONS)
            restarts += 1
        for name, writer in writers.items():
            sent[name] = writer.stop()
        _read_to_the_end(folder, follower, paths)
        last = follower.progress()[-1]["sources"][0]["latestOffset"]
        counts = _counts(folder / "out")
        assert counts == {name: (number, number) for name, number in sent.items()}
        assert restarts > 10
        assert cleaned > 2
        assert last


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
    import json

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
