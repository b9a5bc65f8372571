"""The class-data archive is made, and used by the next start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import ROOT

LOOK = """
from analytics.spark.session import SparkSession
with SparkSession("local[2]") as spark:
    bean = spark.context._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    print([word for word in bean.getInputArguments() if "SharedArchiveFile" in word])
    loaded = spark.context._jvm.java.lang.management.ManagementFactory.getClassLoadingMXBean()
    print(loaded.getTotalLoadedClassCount() > 1000)
"""


@pytest.mark.long
def test_an_archive_is_made_and_used(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )

    assert run("-c", LOOK).stdout.splitlines()[0] == "[]"
    made = run("-m", "rmqctl", "lag", "warmup", "-o", "json", "-q")
    assert made.stderr == ""
    (archive,) = (tmp_path / "cache" / "rmqctl").glob("*/classes.jsa")
    assert str(archive) in made.stdout
    assert archive.stat().st_size > 50 << 20
    assert list(archive.parent.glob("*.new")) == []
    used = run("-c", LOOK).stdout.splitlines()
    assert str(archive) in used[0]
    assert used[1] == "True"


@pytest.mark.slow
def test_a_cache_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rmqctl", "lag", "warmup"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": "/proc/none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "/proc/none/rmqctl, where the archive would be kept, cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_it_has_no_dry_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rmqctl", "lag", "warmup", "-n"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "it has no dry run" in done.stderr
    assert list(tmp_path.iterdir()) == []
