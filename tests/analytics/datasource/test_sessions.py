"""Spark finds the source where the environment of the program is not activated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import golden

PROGRAM = """
import os, sys
import pyspark_rocketmq
from analytics.datasource.session import WorkerError
conf = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
spark = pyspark_rocketmq.builder().master("local[1]").config(map=conf).getOrCreate()
print("rows", spark.read.format("rocketmq").load(sys.argv[1]).count())
spark.sparkContext.pythonExec = sys.argv[2]  # as if that session had been made without it
for check in (lambda: pyspark_rocketmq.register(spark), pyspark_rocketmq.builder):
    try:
        check()
    except WorkerError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_program_of_an_environment_that_is_not_activated(tmp_path: Path) -> None:
    bare = tmp_path / "python3"  # the one of the PATH: without rmqctl
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environ = {**os.environ, "PATH": f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"}
    environ.pop("PYSPARK_PYTHON", None)
    command = [sys.executable, str(program), str(golden.store("lmq-4.9")), str(bare)]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("rows")] == ["rows 79"], done.stderr[-3000:]
    refusals = [line for line in lines if "PYSPARK_PYTHON=" in line]
    assert len(refusals) == 2
    assert all(str(bare) in line and "No module named" in line for line in refusals)
