"""A disk that gets full while lines are sent: to repeat all of them would store some twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mounting import NEW_MOUNTS, skip_unless_mountable

ROOT = Path(__file__).parents[3]
SCRIPT = """
mount -t tmpfs -o size=290m none disk
rmqctl() { PYTHONPATH=$ROOT $PYTHON -P -m rmqctl "$@"; }
rmqctl store init disk/store --small
$PYTHON -c 'for n in range(800): print("x" * 60_000)' > lines
$PYTHON -c 'for n in range(800): print("{\\"body\\": \\"" + "x" * 60_000 + "\\"}")' > lines.jsonl
rmqctl store init other --small
echo x | rmqctl produce big -S other
rmqctl message export big -S other --save one.jsonl
$PYTHON -c 'import json
row = json.load(open("one.jsonl")) | {"body": "x" * 60_000}
for n in range(800): print(json.dumps(row))' > whole.jsonl
rmqctl $COMMAND -S disk/store > out 2> err || echo $? > code
rmqctl store info -S disk/store -o json > info
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "produce big lines",
        "message import lines.jsonl -t big",
        "message import whole.jsonl --keep-times",
    ],
)
def test_a_full_disk_tells_how_many_are_stored(command: str, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    skip_unless_mountable(tmp_path / "disk")
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "ROOT": str(ROOT),
        "PYTHON": sys.executable,
        "COMMAND": command,
    }
    script = [*NEW_MOUNTS, "sh", "-eu", "-c", SCRIPT]
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    said = (tmp_path / "err").read_text()
    assert (tmp_path / "code").read_text() == "8\n", said
    stored = json.loads((tmp_path / "info").read_text())["messages"]
    assert 0 < stored < 800
    assert "MiB are free" in said
    assert f"the {stored:,} messages before are stored" in said
