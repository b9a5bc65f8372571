"""Killing a rebuild of queues and index at every instant.

Runs in a slim interpreter (tests.support.slim): it forks once for each instant.
"""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

import numpy  # noqa: F401 - once, before the forks

from storage.coordination.exclusive import alone
from storage.files.fs import FileSystem
from storage.readonly import StoreView
from storage.tools.quarantine import Quarantine
from storage.tools.rebuild.index import plan_index, rebuild_index
from storage.tools.rebuild.queue import plan_queues, rebuild_queues
from storage.tools.rebuild.replacement import (
    put_index_in_place,
    put_queues_in_place,
    staging,
    unclean,
)
from tests.support.copies import copy_store
from tests.support.crash import Acknowledge, Acknowledged, Child
from tests.support.every_instant import die_at, judge
from tests.support.samples import START_MS, Ticking, new_store, open_store, prepared
from tests.support.watched_fs import WatchedFileSystem
from tests.support.workloads import WORKLOADS


def rebuild_all(root: Path, fs: FileSystem | None = None) -> None:
    """Queues, then the index, as the command does it."""
    fs = fs or FileSystem()
    with alone(root), StoreView.open(root) as view, staging(root, fs) as made:
        queues = rebuild_queues(view, made, fs=fs)
        with unclean(root, fs):
            list(put_queues_in_place(view, made, queues, Quarantine(root, START_MS, fs), fs=fs))
    with alone(root), StoreView.open(root) as view, staging(root, fs) as made:
        files = rebuild_index(view, made, fs=fs)
        with unclean(root, fs):
            list(put_index_in_place(view, made, files, Quarantine(root, START_MS, fs), fs=fs))


def is_as_the_log_says(root: Path) -> bool:
    with StoreView.open(root) as view:
        return all(queue.is_same for queue in plan_queues(view)) and all(
            file.is_same for file in plan_index(view)
        )


def killed_while_replacing(folder: str, shard: int, shards: int) -> dict[str, object]:
    """Of a damaged store: at every instant all that could be read can be read, and nothing else;
    once more finishes it; and an opening for writing instead finds everything."""
    config, puts, _ = WORKLOADS["singles"]
    original = new_store(Path(folder) / f"original-{shard}", config)
    acknowledged: list[Acknowledged] = []
    store = open_store(original, config, clock=Ticking())
    for put in puts:
        result = store.put(prepared(put.samples), whole=put.whole)
        places = zip(put.samples, result.commitlog_offsets, result.queue_offsets, strict=True)
        acknowledged += [Acknowledged(sample, int(p), int(o)) for sample, p, o in places]
    store.close()
    _damage(original)
    readable = [one for one in acknowledged if _reads(original, one)]
    assert 10 < len(readable) < len(acknowledged)
    ids = {one.sample.id for one in acknowledged}
    failures: list[str] = []
    for number in count(1 + shard, shards):
        root = copy_store(original, Path(folder) / f"store-{shard}-{number}")

        def run(_: Acknowledge, root: Path = root, number: int = number) -> None:
            rebuild_all(root, WatchedFileSystem(lambda instant: die_at(number, instant)))

        was_killed, _ = Child(run).wait()
        problems = [f"{one.sample.id} was lost" for one in readable if not _reads(root, one)]
        problems += _strangers(root, ids)
        if number // shards % 2:
            rebuild_all(root)
            if not is_as_the_log_says(root):
                problems.append("the second run did not finish it")
            problems += [
                f"{one.sample.id} is lost" for one in acknowledged if not _reads(root, one)
            ]
            problems += judge(root, config, acknowledged, ids, with_fsck=number % 9 == 0)
        else:
            # Units that contradict their record are left to be rebuilt; all else recovery does.
            open_store(root, config, clock=Ticking(START_MS + 3_600_000)).close()
            problems += [f"{one.sample.id} was lost" for one in readable if not _reads(root, one)]
            rebuild_all(root)
            problems += judge(root, config, acknowledged, ids, with_fsck=False)
        failures += [f"killed at instant {number}: {problem}" for problem in problems]
        shutil.rmtree(root)
        if not was_killed or len(failures) > 20:
            break
    return {"instants": number, "failures": failures}


def _damage(root: Path) -> None:
    """A queue without a file, one with a wrong unit, one with a file too many; a wrong index."""
    queues = root / "consumequeue"
    min((queues / "A" / "0").iterdir()).unlink()
    with min((queues / "B" / "3").iterdir()).open("r+b") as file:
        file.write(b"\x01" * 20)
    (queues / "S" / "0" / f"{8000:020d}").write_bytes(bytes(80))
    names = sorted(path.name for path in (root / "index").iterdir())
    with (root / "index" / names[0]).open("r+b") as file:
        file.seek(40)
        file.write(b"\x00\x00\x00\x01" * 3)
    (root / "index" / "20991231235959999").write_bytes((root / "index" / names[-1]).read_bytes())


def _reads(root: Path, one: Acknowledged) -> bool:
    with StoreView.open(root) as view:
        sample = one.sample
        found = view.get_message(sample.topic, sample.queue_id, one.queue_offset, 1).messages
        return bool(found) and found[0].body == sample.body()


def _strangers(root: Path, ids: set[str]) -> list[str]:
    """Messages that no producer sent there."""
    problems: list[str] = []
    with StoreView.open(root) as view:
        for topic, queue_id in view.queues():
            low, high = view.queue_bounds(topic, queue_id)
            for offset in range(low, high):
                found = view.get_message(topic, queue_id, offset, 1).messages
                names = {message.properties["UNIQ_KEY"] for message in found}
                problems += [f"{name} in {topic} {queue_id}" for name in names - ids]
    return problems
