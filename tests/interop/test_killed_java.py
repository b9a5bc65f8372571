"""What a killed Java store leaves, we recover as Java does or better, and both go on."""

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from tests.interop import answers
from tests.interop.our_writing import write
from tests.interop.samples import SMALL_FILES, our_config, samples
from tests.interop.store_probe import OpenStore, Row, StoreProbe
from tests.support.java import JavaError

pytestmark = pytest.mark.interop

_OF_A_FILE = 500
"""More messages than a log file takes."""
_LEAST = 10_000
"""So many take Java much longer than a kill."""


@pytest.mark.parametrize(
    "log_files", [5, *(pytest.param(n, marks=pytest.mark.long) for n in (9, 40))]
)
@pytest.mark.parametrize("name", ["probe49", pytest.param("probe53", marks=pytest.mark.long)])
def test_we_recover_what_a_java_killed_in_the_middle_left(
    name: str, log_files: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    probe: StoreProbe = request.getfixturevalue(name)
    root = tmp_path / "store"
    written = samples(max(_LEAST, _OF_A_FILE * log_files))
    with probe.opened(root, SMALL_FILES) as java:
        _kill_in_the_middle(java, root, log_files, [sample.java_message() for sample in written])
    assert (root / "abort").exists()
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", "--sparse=always", str(root), str(copy)], check=True)

    # Java may have died before it made a queue or index file that shows their length.
    config = our_config(SMALL_FILES)
    with StoreView.open(root, config) as view:
        seen = answers.dump(view)
    for path in copy.rglob("0*"):  # Java died making it, and would not load it
        if path.is_file() and not path.stat().st_size:
            path.unlink()
    with probe.opened(copy, SMALL_FILES) as java:
        answers.same_as(seen, java.dump())
        java.kill()
    shutil.rmtree(copy)

    with MessageStore.open(root, config) as store:
        assert store.recovery is not None
        assert not store.recovery.clean_shutdown
        assert answers.dump(store.view) == seen
        for row in seen["messages"]:
            key = row["properties"]["UNIQ_KEY"]
            [found] = store.view.find_unique(row["topic"], key)
            assert found.commitlog_offset == row["commitLogOffset"]
        kept = len(seen["messages"])
        assert sorted(int(row["properties"]["n"]) for row in seen["messages"]) == [*range(kept)]
        write(store, samples(60, first=kept))
    assert not (root / "abort").exists()

    with probe.opened(root, SMALL_FILES) as java, StoreView.open(root) as view:
        ours = answers.dump(view)
        assert len(ours["messages"]) == kept + 60
        answers.same_as(ours, java.dump())
        keys = answers.key_questions(ours)
        assert answers.query_by_key(view, keys) == java.query_by_key(keys)
        java.kill()


def _kill_in_the_middle(java: OpenStore, root: Path, log_files: int, messages: list[Row]) -> None:
    """Kill the JVM while it appends, as soon as there are so many log files with data."""
    enough = threading.Event()

    def append() -> None:
        with pytest.raises(JavaError, match="append: the JVM"):
            java.append(messages)
        enough.set()

    appending = threading.Thread(target=append)
    appending.start()
    # A file is made ahead of the one that is written.
    while not enough.is_set() and len(list((root / "commitlog").iterdir())) <= log_files:
        pass
    os.kill(java.pid, signal.SIGKILL)
    appending.join()
    java.kill()
