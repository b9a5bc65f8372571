"""Operators' commands as whole processes: rmqctl beside mqadmin with a running broker.

mqadmin's time ends with its output; it exits three seconds later. Both have equal folders: a topic
of four queues, a group that has consumed half of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.contest import Contestant
from benchmarks.goals import row
from benchmarks.java_peer import Cluster, running_cluster
from benchmarks.report import Row
from benchmarks.run import Run
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.configs.topics import TopicConfig
from storage.format.message import retry_topic
from storage.format.names import ABORT, OURS

NAME = "mqadmin"
_TOPIC = "benchmark"
_GROUP = "readers"
_QUEUES = 4
_KEY = "order-77"
_QUIET_S = 0.5


def measure(run: Run) -> Iterator[Row]:
    with run.folder() as scratch:
        ours, java = scratch / "ours", scratch / "java"
        for root in (ours, java):
            _make(root, run.sized(500_000, 50_000))
        shutil.rmtree(java / OURS)
        (java / ABORT).unlink(missing_ok=True)
        with running_cluster(java, scratch) as cluster:
            yield from _compare(run, ours, cluster)


def _make(root: Path, count: int) -> None:
    create_store(root)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig(_TOPIC, _QUEUES, _QUEUES))
        broker.update_topic(TopicConfig(retry_topic(_GROUP), 1, 1))  # mqadmin asks there first
        for first in range(0, count, 1_000):
            numbers = range(first, first + 1_000)
            queue_ids = [number % _QUEUES for number in numbers]
            keys = [f"order-{number}" for number in numbers]
            broker.send_column(_TOPIC, [bytes(200)] * 1_000, queue_ids, keys=keys)
        half = count // _QUEUES // 2
        commits = [OffsetCommit(_TOPIC, queue_id, half) for queue_id in range(_QUEUES)]
        broker.update_consumer_offsets(_GROUP, commits)


def _compare(run: Run, root: Path, cluster: Cluster) -> Iterator[Row]:
    commands = {
        "lag show": (["lag", "show", _GROUP], ["consumerProgress", "-g", _GROUP]),
        "message query": (
            ["message", "query", "-k", _KEY, "-t", _TOPIC],
            ["queryMsgByKey", "-t", _TOPIC, "-k", _KEY],
        ),
        "resetOffsetByTime": (
            ["resetOffsetByTime", "-g", _GROUP, "-t", _TOPIC, "-s", "-1h", "--yes"],
            ["resetOffsetByTime", "-g", _GROUP, "-t", _TOPIC, "-s", "0"],
        ),
        "topic queues": (["topic", "queues", _TOPIC], ["topicStatus", "-t", _TOPIC]),
    }
    prompts: dict[str, list[float]] = {}
    contestants: dict[str, Contestant] = {}
    for name, (mine, its) in commands.items():
        command = [*rmqctl(), "-S", str(root), *mine]
        prompts[name] = []
        contestants[name] = partial(seconds_of, command)
        contestants[f"java {name}"] = partial(_mqadmin, run, cluster, its, prompts[name])
    times = run.take_turns("mqadmin", contestants, new_processes=True)
    for name in commands:
        ratios = times.ratios(f"java {name}", name)
        texts = (f"{times.median(name) * 1e3:.0f} ms", f"{times.median(f'java {name}'):.2f} s")
        yield row(f"mqadmin/{name}", texts, ratios, detail="to its output", samples=times.of)
        if run.quick:
            continue
        waits = prompts[name][-len(ratios) :]  # the first was the warming round's
        until = [wait / mine for wait, mine in zip(waits, times.of[name], strict=True)]
        yield Row(f"... {name}, to the prompt", texts[0], f"{median(waits):.2f} s", until)


def _mqadmin(run: Run, cluster: Cluster, arguments: list[str], waits: list[float]) -> float:
    printed, ended = cluster.mqadmin(*arguments, quiet_s=_QUIET_S if run.quick else None)
    waits.append(ended)
    return printed
