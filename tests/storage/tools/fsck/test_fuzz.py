"""Files of a store, damaged at random, and the commands that read them.

Nothing ends in a traceback or an internal error, nothing hangs or takes much memory, no reader
shows fewer messages than there are and exits with 0. The number determines the round:
``python -m tests.support.own_files_fuzz`` for files of rmqctl's own and for settings, ``python -m
tests.support.record_fuzz`` for records, consume queue units and index files.
"""

import json
import subprocess
import sys

import pytest

from tests.support.cli import ROOT
from tests.support.own_files_fuzz import MOST_MEMORY

_ROUNDS = 20_000
_SHARDS = 20


def fuzz(what, folder, first, count, commands):
    """Run rounds in a process of their own, so that its memory is that of the rounds."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.support.{what}"]
        + [str(word) for word in (folder, first, count, commands)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["lost"] == [], json.dumps(found["lost"], indent=1)
    assert found["memory"] < MOST_MEMORY
    return found


@pytest.mark.slow
def test_some_damaged_files_harm_no_command(tmp_path):
    found = fuzz("own_files_fuzz", tmp_path, 0, 150, 1)
    assert len(found["files"]) >= 20


@pytest.mark.slow
def test_some_damaged_records_harm_no_reader(tmp_path):
    fuzz("record_fuzz", tmp_path, 0, 100, 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(_SHARDS))
@pytest.mark.parametrize(("what", "commands"), [("own_files_fuzz", 2), ("record_fuzz", 4)])
def test_twenty_thousand_damaged_files_harm_no_command(tmp_path, what, commands, shard):
    count = _ROUNDS // _SHARDS
    fuzz(what, tmp_path, 1_000 + shard * count, count, commands)
