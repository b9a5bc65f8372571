"""``python -m analytics``, as spark-submit starts it, in this process's engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import run
from tests.support.hand_made import START_MS, TINY, HandMade

ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = tmp_path / os.fsdecode(b"caf\xe9") / "store"
    root.mkdir(parents=True)
    made = HandMade(TINY)
    for number in range(6):
        made.put("T", 0, b"%d" % number, tags="caf\u00e9")
    made.write(root)
    (root / "config").mkdir()
    table = {"offsetTable": {"T@g": {"0": 2}, "T@half\ud800": {"0": 4}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))
    return root


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
@pytest.mark.parametrize("as_of", [0, START_MS + 10_000_000])
def test_it_prints_the_json_of_the_command(store: Path, locale: str, as_of: int) -> None:
    words = ["-m", "analytics", "--engine", "local", "--as-of", str(as_of), str(store)]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    asked = ("--engine", "local", "--as-of", as_of, "-o", "json", "-q")
    command = run("lag", "report", *asked, "-S", store)
    assert shared(json.loads(done.stdout)) == shared(json.loads(command.out))


def shared(report: dict[str, Any]) -> dict[str, Any]:
    """What both say of one store: without the time it took, and a report before."""
    of_command = ("elapsed_ms", "lag_before", "lag_change")
    found = {name: value for name, value in report.items() if name not in of_command}
    groups = [
        {name: value for name, value in row.items() if name not in of_command}
        for row in report["groups"]
    ]
    return {**found, "groups": groups}
