"""Reading takes no lock, writes nothing and creates nothing, whatever the store is like."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import golden
from tests.support.privileges import without_privileges
from tests.support.samples import SMALL, Sample, new_store, open_store, prepared

# Runs in a process of its own: an audit hook cannot be removed again.
WATCHED = """
import fcntl, json, os, sys
sys.path.insert(0, sys.argv[1])
root = sys.argv[2]
import mmap, numpy, storage.read.message_columns, storage.info, storage.tools.fsck
from storage.readonly import Boundary, StoreView
import isal.isal_zlib

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.utime", "os.link",
           "os.symlink", "os.chmod", "os.chown", "os.mkfifo", "shutil.", "tempfile.")
seen = []

def watch(event, args):
    if event == "open" and isinstance(args[2], int) and args[2] & WRITES:
        seen.append(f"opened {args[0]} for writing")
    elif event == "mmap.__new__" and args[2] not in (mmap.ACCESS_READ,):
        seen.append("mapped for writing")
    elif event == "fcntl.fcntl" and args[1] in (6, 7, 37, 38):
        seen.append("took a lock")
    elif event in ("fcntl.lockf", "fcntl.flock") or event.startswith(CHANGES):
        seen.append(f"{event} {args}")

sys.addaudithook(watch)
with StoreView.open(root) as view:
    storage.info.store_info(view)
    for topic, queue_id in view.queues():
        low, high = view.queue_bounds(topic, queue_id)
        for offset in range(low, high):
            for message in view.get_message(topic, queue_id, offset, 32).messages:
                message.body, message.properties
                view.find_unique(topic, message.msg_id)
                view.look_message_by_offset(message.commitlog_offset)
        view.read_column(topic, queue_id, low, 1000)
        for boundary in Boundary:
            view.offset_in_queue_by_time(topic, queue_id, 1795255725660, boundary)
    view.topics(), view.consumer_offsets()
    storage.tools.fsck.fsck(view)
print(json.dumps(seen))
"""

REPOSITORY = Path(__file__).resolve().parents[3]


def writes_while_reading(root: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED, REPOSITORY, root],
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: list[str] = json.loads(done.stdout)
    return found


def snapshot(root: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        head = b""
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(1 << 20)  # all that sparse files of 1 GiB hold
        found[str(path.relative_to(root))] = (info.st_size, info.st_mtime_ns, head)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["small-files-4.9", "unclean-5.3", "torn-cq-file-missing-4.9", "cqext-4.9", "phantom-4.9"],
)
def test_reading_a_foreign_store_changes_nothing(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    before = snapshot(root)
    assert writes_while_reading(root) == []
    assert snapshot(root) == before


@pytest.mark.slow
def test_reading_a_store_of_ours_changes_nothing(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        store.put(prepared([Sample(f"id-{number}", "T") for number in range(50)]))
        before = snapshot(root)
        assert writes_while_reading(root) == []
        assert snapshot(root) == before


COUNTED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from storage.info import store_info
from storage.readonly import StoreView

assert not os.access(sys.argv[2], os.W_OK), "permissions do not hold"
with StoreView.open(sys.argv[2]) as view:
    print(store_info(view).messages)
"""


def test_a_store_without_write_permission_is_read(tmp_path: Path) -> None:
    root = golden.extract("small-files-4.9", tmp_path)
    python = [*without_privileges(), sys.executable, "-B", "-c", COUNTED]
    for path in [root, *root.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        done = subprocess.run(
            [*python, REPOSITORY, root], capture_output=True, check=False, timeout=120
        )
    finally:
        for path in [root, *root.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
    assert (done.returncode, done.stdout) == (0, b"871\n"), done.stderr.decode()
