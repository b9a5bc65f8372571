"""Old files are deleted on a disk that is really full; the journal's entry is written after it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.configs.journal import Journal
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.mounting import NEW_MOUNTS, skip_unless_mountable
from tests.support.samples import TINY

ROOT = Path(__file__).parents[4]
FULL = "head -c 8m /dev/zero > $1/ballast 2> error || test -s error"
CLEAN = """
$PYTHON -P -m rmqctl store clean -y -S disk/s -o json > out 2> err && code=$? || code=$?
rm -f $1/ballast
cp -a disk/s after
exit $code
"""


@pytest.fixture
def aged(tmp_path):
    """A store without a journal, whose log files are old, but for the last one."""
    root = tmp_path / "s"
    MessageStore.create(root, TINY)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        for _ in range(120):
            broker.send(Message("t", bytes(300)), 0)
    logs = sorted((root / "commitlog").iterdir())
    assert len(logs) > 12, "more than one run of the cleaning service deletes"
    for path in logs[:-1]:
        os.utime(path, (1, 1))
    shutil.rmtree(Journal(root).path)
    return root


def cleaned(folder, mount, full):
    """Clean a copy on a disk of its own; gives the exit code, the rows and standard error."""
    (folder / "disk").mkdir()
    skip_unless_mountable(folder / "disk")
    done = subprocess.run(
        [*NEW_MOUNTS, "sh", "-eu", "-c", mount + FULL + CLEAN, "sh", full],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    said = done.stderr + (folder / "err").read_text()
    return done.returncode, json.loads((folder / "out").read_text() or "[]"), said


@pytest.mark.slow
@pytest.mark.parametrize("has_journal", [False, True])
def test_a_full_disk_gets_room(aged, tmp_path, has_journal):
    logs = sorted(path.name for path in (aged / "commitlog").iterdir())
    if has_journal:  # the entry does not fit into the rest of its file's last block
        Journal(aged).append({"reason": "x" * 3_900}, 1)
    mount = "mount -t tmpfs -o size=4m none disk; cp -a s disk; "
    code, rows, said = cleaned(tmp_path, mount, "disk")
    assert code == 0, said
    assert [row["file"] for row in rows if row["kind"] == "log"] == [
        f"commitlog/{name}" for name in logs[:-1]
    ]
    assert all(row["applied"] for row in rows)
    after = tmp_path / "after"
    assert [path.name for path in (after / "commitlog").iterdir()] == logs[-1:]
    *_, entry = Journal(after).entries()
    assert entry["command"] == "store clean"
    assert entry["old"] == [f"commitlog/{name}" for name in logs[:-1]]


@pytest.mark.slow
def test_what_was_deleted_without_an_entry_in_the_journal_is_said(aged, tmp_path):
    logs = sorted(path.name for path in (aged / "commitlog").iterdir())
    mount = (
        "cp -a s disk; mkdir disk/s/rmqctl/journal; "
        "mount -t tmpfs -o size=4k none disk/s/rmqctl/journal; "
    )
    code, rows, said = cleaned(tmp_path, mount, "disk/s/rmqctl/journal")
    assert code == 8, said
    assert "the files were deleted, but without an entry in the journal: " in said
    assert "No space left on device" in said
    assert [row["file"] for row in rows if row["kind"] == "log"] == [
        f"commitlog/{name}" for name in logs[:-1]
    ]
    assert [path.name for path in (tmp_path / "after" / "commitlog").iterdir()] == logs[-1:]
