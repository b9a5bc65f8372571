"""`make demo` does what it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.long, pytest.mark.spark])]
)
def test_the_demo_ends_well(tmp_path, engine):
    """In a short run the report is counted without Spark, whose start takes most of the time."""
    program = tmp_path / "bin" / "rmqctl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "lag report" ] && set -- "$@" --engine {engine}\n'
        f'exec {sys.executable} -P -m rmqctl "$@"\n'
    )
    program.chmod(0o755)
    home = str(tmp_path / "home")
    done = subprocess.run(
        ["sh", ROOT / "docs/demo.sh"],
        env={
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XDG_CONFIG_HOME": home,
            "XDG_DATA_HOME": home,
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "the files are the same" in done.stdout
    assert "sent 169 messages" in done.stdout + done.stderr
    assert Path(ROOT / "LICENSE").read_text().count("\n") > 169
