"""A real standalone master with two workers on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from analytics.spark.home import spark_home
from analytics.spark.java import find_java
from tests.support import golden
from tests.support.cli import ROOT
from tests.support.standalone import daemon, short_lived

pytestmark = pytest.mark.slow
PATIENCE_S = 60
AS_OF = "1900000000000"


class Cluster(NamedTuple):
    """A running cluster: its master, and the processes of its workers."""

    url: str
    workers: list[subprocess.Popen[bytes]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(what: str, found: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    assert callable(found)
    while not found():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    port, web = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    package = "org.apache.spark.deploy"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    listening = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
    master = daemon(folder, "master", [f"{package}.master.Master", *listening], environment)
    workers = []
    for number in range(2):
        words = [
            *(f"{package}.worker.Worker", "--host", "127.0.0.1", "--cores", "1"),
            *("--memory", "1200m", "--work-dir", str(folder / f"work-{number}")),
            *("--webui-port", str(free_port()), url),
        ]
        workers.append(daemon(folder, f"worker-{number}", words, environment))

    def alive() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"]) == 2
        except (OSError, ValueError):
            return False

    try:
        wait_for("two workers", alive)
        yield Cluster(url, workers)
    finally:
        for process in (*workers, master):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def report(*words: str, home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "rmqctl", "lag", "report", "--as-of", AS_OF, "-o", "json"]
        + list(words),
        env={
            **os.environ,
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(home / "cache"),
            "PYSPARK_PYTHON": sys.executable,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def document(process: subprocess.Popen[str]) -> dict[str, object]:
    try:
        out, err = process.communicate(timeout=2 * PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    assert process.returncode == 0, err
    found: dict[str, object] = json.loads(out)
    del found["engine"], found["elapsed_ms"]
    return found


STORES = tuple(word for name in ("basic-4.9", "time-4.9", "ipv6-4.9") for word in ("-S", name))


def words() -> list[str]:
    return [str(golden.store(word)) if word != "-S" else word for word in STORES]


Here = dict[str, object]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """What this process says of the stores."""
    home = tmp_path_factory.mktemp("here")
    return document(report(*words(), "--engine", "local", home=home))


@pytest.mark.long
def test_a_cluster_says_what_this_process_says(
    cluster: Cluster, here: Here, tmp_path: Path
) -> None:
    there = document(report(*words(), "--master", cluster.url, home=tmp_path))
    assert here == there


@pytest.mark.long
def test_submitted_to_a_cluster_that_has_not_installed_us(cluster: Cluster, tmp_path: Path) -> None:
    zipped = tmp_path / "rmqctl.zip"
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", str(zipped), "analytics", "storage"],
        cwd=ROOT,
        check=True,
    )
    java = find_java()
    home = spark_home(java)
    done = subprocess.run(
        [
            str(home.path / "bin" / "spark-submit"),
            "--master",
            cluster.url,
            "--conf",
            "spark.driver.host=127.0.0.1",
            "--conf",
            "spark.ui.enabled=false",
            "--py-files",
            str(zipped),
            str(ROOT / "analytics" / "__main__.py"),
            str(golden.store("basic-4.9")),
            "--as-of",
            AS_OF,
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "SPARK_HOME": str(home.path),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            **short_lived(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found, end = json.JSONDecoder().raw_decode(done.stdout)
    assert done.stdout[end:].strip() == "", done.stdout[end:]
    here = document(
        report("-S", str(golden.store("basic-4.9")), "--engine", "local", home=tmp_path)
    )
    groups: Any = here["groups"]
    for row in groups:  # which the terminal adds, for a comparison with an earlier report
        assert (row.pop("lag_before"), row.pop("lag_change")) == (None, None)
    for name in ("totals", "groups", "queues", "tags", "minutes"):
        assert found[name] == here[name], name


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(
    cluster: Cluster, here: Here, tmp_path: Path
) -> None:
    running = report(*words(), "--master", cluster.url, home=tmp_path)
    victim = cluster.workers[0]

    def has_executor() -> bool:
        tasks = Path(f"/proc/{victim.pid}/task").glob("*/children")
        return any(path.read_text().strip() for path in tasks)

    wait_for("an executor of the worker", has_executor)
    os.killpg(victim.pid, signal.SIGKILL)
    assert document(running) == here


@pytest.mark.long
def test_a_cluster_that_gives_no_executor_is_told_of(
    cluster: Cluster, here: Here, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", GREEDY, cluster.url],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as greedy:
        assert greedy.stdin is not None
        assert greedy.stdout is not None
        assert greedy.stdout.readline() == b"has it all\n"
        waiting = report(*words(), "--master", cluster.url, home=tmp_path)
        assert waiting.stderr is not None
        said = waiting.stderr.readline()
        greedy.stdin.close()  # now it ends, and its cores are ours
        assert document(waiting) == here
    assert f"rmqctl: warning: {cluster.url} has given us no executor for 8 s" in said
    assert "--engine local" in said


GREEDY = """
import sys
from analytics.spark.session import SparkSession

with SparkSession(sys.argv[1], conf={"spark.executor.memory": "600m"}) as session:
    session.context.parallelize(range(2), 2).map(str).collect()
    print("has it all", flush=True)
    sys.stdin.read()
"""
