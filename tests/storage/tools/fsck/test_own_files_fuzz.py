"""Files of rmqctl's own and of settings, damaged at random, and every command on them.

Nothing ends in a traceback or an internal error, nothing hangs, no reader shows less than there is
and exits with 0. The number determines the round: ``python -m tests.support.own_files_fuzz``.
"""

import json
import subprocess
import sys

import pytest

from tests.support.cli import ROOT
from tests.support.own_files_fuzz import MOST_MEMORY

_ROUNDS = 20_000
_SHARDS = 20


def fuzz(folder, first, count, commands):
    """Run rounds in a process of their own, so that its memory is that of the rounds."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.support.own_files_fuzz"),
            *map(str, (folder, first, count, commands)),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_three_hundred_damaged_files_harm_no_command(tmp_path):
    found = fuzz(tmp_path, 0, 300, 1)
    assert found["lost"] == []
    assert found["memory"] < MOST_MEMORY
    assert len(found["files"]) >= 20


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(_SHARDS))
def test_twenty_thousand_damaged_files_harm_no_command(tmp_path, shard):
    count = _ROUNDS // _SHARDS
    found = fuzz(tmp_path, 1_000 + shard * count, count, 2)
    assert found["lost"] == []
    assert found["memory"] < MOST_MEMORY
