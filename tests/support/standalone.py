"""A standalone Spark: a master and one worker on loopback, of the JVM that tests use."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from analytics.spark.home import spark_home
from analytics.spark.java import find_java
from tests.interop.network import free_ports
from tests.support.java import SHORT_LIVED

_PATIENCE_S = 60


@contextmanager
def standalone(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run a master and a worker of two cores; gives the master's address.

    ``environment`` is all that they have beside Spark's own variables and PATH: no PYTHONPATH.
    """
    folder.mkdir()
    (port, web), (own, _) = free_ports(), free_ports()
    master = f"spark://127.0.0.1:{port}"
    package = "org.apache.spark.deploy"
    words = {
        "master": [f"{package}.master.Master", *_host(port), "--webui-port", str(web)],
        "worker": [
            *(f"{package}.worker.Worker", "--host", "127.0.0.1", "--cores", "2"),
            *("--memory", "1500m", "--work-dir", str(folder / "work")),
            *("--webui-port", str(own), master),
        ],
    }
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name, some in words.items():
            running.append(daemon(folder, name, some, environment))
        deadline = time.monotonic() + _PATIENCE_S
        while not _is_alive(web):
            assert time.monotonic() < deadline, (folder / "worker.log").read_text()[-2000:]
            time.sleep(0.05)
        yield master
    finally:
        for process in reversed(running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _host(port: int) -> list[str]:
    return ["--host", "127.0.0.1", "--port", str(port)]


def daemon(
    folder: Path, name: str, words: Sequence[str], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start one of Spark's daemons in the foreground, as leader of a group of processes.

    Its JVM and those of its executors do not compile twice: they live for seconds.
    """
    java = find_java()
    home = spark_home(java)
    submit = (home.path / "bin" / "spark-submit").read_text()
    options = [*re.findall(r"--add-opens=\S+", submit), *SHORT_LIVED]
    settings = folder / "conf"
    settings.mkdir(exist_ok=True)
    (settings / "java-opts").write_text("\n".join(SHORT_LIVED))  # of executors
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(java.program), "-Xmx512m", *options, "-cp", f"{home.path}/jars/*", *words],
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "SPARK_HOME": str(Path(pyspark.__file__).parent),  # as a cluster would have it
                "SPARK_CONF_DIR": str(settings),
                "SPARK_SCALA_VERSION": "2.13",  # what its shell scripts find out
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_DIRS": str(folder),
                **environment,
            },
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def short_lived(folder: Path) -> dict[str, str]:
    """The variable with which ``bin/spark-submit`` of our home starts such a JVM."""
    options = folder / "jvm.options"
    options.write_text("\n".join(SHORT_LIVED))
    return {"RMQCTL_SPARK_JVM": str(options)}


def _is_alive(web: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"]) == 1
    except (OSError, ValueError):
        return False
