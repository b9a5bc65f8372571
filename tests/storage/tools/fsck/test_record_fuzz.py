"""Records, consume queue units and index files, damaged at random, and the commands that read them.

Nothing ends in a traceback or an internal error, nothing hangs or takes much memory, no reader
shows fewer messages than there are and exits with 0. Each round is determined by its number:
``python -m tests.support.record_fuzz``.
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
            *(sys.executable, "-m", "tests.support.record_fuzz"),
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
def test_two_hundred_damaged_records_harm_no_reader(tmp_path):
    found = fuzz(tmp_path, 0, 200, 1)
    assert found["lost"] == []
    assert found["memory"] < MOST_MEMORY


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(_SHARDS))
def test_twenty_thousand_damaged_records_harm_no_reader(tmp_path, shard):
    count = _ROUNDS // _SHARDS
    found = fuzz(tmp_path, 1_000 + shard * count, count, 4)
    assert found["lost"] == []
    assert found["memory"] < MOST_MEMORY
