"""Queues of real brokers, damaged or lost, are rebuilt byte for byte."""

import shutil
from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.coordination.exclusive import alone
from storage.files.fs import FileSystem
from storage.format.cq_unit import MAX_EXT_ADDR
from storage.format.names import CONSUMEQUEUE
from storage.readonly import StoreView
from storage.tools.quarantine import Quarantine
from storage.tools.rebuild.queue import RebuiltQueue, plan_queues, rebuild_queues
from storage.tools.rebuild.replacement import put_queues_in_place, staging, unclean
from tests.support import golden
from tests.support.samples import START_MS

HEALTHY = [
    name
    for name in golden.names()
    if not name.startswith(("torn-", "hole", "phantom")) or name == "torn-no-index-4.9"
]
WRITTEN = [name for name in HEALTHY if name != "cqext-4.9"]
LARGE = {"basic-4.9", "basic-5.3", "retry-dlq-5.3", "transaction-5.3", "ipv6-4.9", "time-5.3"}
"""Stores of large files, or of what a smaller one has too."""
SOME_LONG = [
    pytest.param(name, marks=pytest.mark.long) if name in LARGE else name for name in WRITTEN
]


def config_of(name: str) -> StoreConfig:
    """The delay levels that a broker had: no file of the store has them."""
    levels = golden.manifest(name)["settings"].get("messageDelayLevel")
    return StoreConfig() if levels is None else StoreConfig(message_delay_level=levels)


def rebuild(root: Path, config: StoreConfig | None = None) -> list[RebuiltQueue]:
    """All queues that are wrong, in their place."""
    fs = FileSystem()
    with alone(root), StoreView.open(root, config) as view, staging(root, fs) as made:
        queues = rebuild_queues(view, made)
        with unclean(root, fs):
            return list(put_queues_in_place(view, made, queues, Quarantine(root, START_MS)))


def queue_files(root: Path) -> dict[str, bytes]:
    folder = root / CONSUMEQUEUE
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_store_has_nothing_to_rebuild(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        queues = plan_queues(view)
    assert queues
    assert [queue for queue in queues if not queue.is_same or queue.changed] == []
    manifest = golden.manifest(name)["queues"]
    ends = {(row["topic"], row["queueId"]): row["maxOffset"] for row in manifest}
    for queue in queues:
        expected = ends[queue.topic, queue.queue_id]
        assert queue.next_after == queue.next_before == expected, queue


@pytest.mark.conformance("A15")
@pytest.mark.parametrize("name", SOME_LONG)
def test_lost_files_come_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    before = queue_files(root)
    folders = sorted({Path(path).parent for path in before})
    # One queue stays: the length of the files is that of the remaining ones.
    for lost in (folders[1:], folders[:1]):
        for folder in lost:
            first = min(path.name for path in (root / CONSUMEQUEUE / folder).iterdir())
            for path in (root / CONSUMEQUEUE / folder).iterdir():
                # A first file that is not the queue's first one holds units of deleted messages.
                if path.name != first or "retention" not in name:
                    path.unlink()
        rebuild(root, config_of(name))
    assert queue_files(root) == before


@pytest.mark.parametrize("name", SOME_LONG)
def test_queues_full_of_wrong_bytes_come_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    before = queue_files(root)
    manifest = golden.manifest(name)["queues"]
    changed = 0
    for row in manifest:
        folder = f"{row['topic']}/{row['queueId']}"
        least = row["minOffset"] * 20
        if row["minOffset"] == row["maxOffset"] or (name, row["topic"]) == (
            "retention-4.9",
            "GoldenIdle",  # all its messages are deleted; 4.9 says that it begins at 0
        ):
            continue
        for path in before:
            if path.startswith(f"{folder}/"):
                begin = int(Path(path).name)
                data = before[path]
                keep = max(0, min(len(data), least - begin))
                with (root / CONSUMEQUEUE / path).open("r+b") as file:
                    file.seek(keep)
                    file.write(b"\x5a" * (min(len(data), 4000) - keep))
                changed += 1
    assert changed
    rebuilt = rebuild(root, config_of(name))
    assert queue_files(root) == before
    assert {len(queue.replaced) > 0 for queue in rebuilt} == {True}


def test_addresses_into_the_ext_files_are_kept_where_they_are_right(tmp_path: Path) -> None:
    root = golden.extract("cqext-4.9", tmp_path)
    before = queue_files(root)
    path = next(path for path in sorted(before) if any(before[path][:20]))
    with (root / CONSUMEQUEUE / path).open("r+b") as file:
        file.write(bytes(20))
    assert int.from_bytes(before[path][12:20], "big", signed=True) <= MAX_EXT_ADDR
    rebuild(root)
    after = queue_files(root)
    assert after[path][:12] == before[path][:12]
    assert int.from_bytes(after[path][12:20], "big", signed=True) > MAX_EXT_ADDR
    after[path] = before[path][:20] + after[path][20:]
    assert after == before


def test_a_hole_and_an_empty_file_behind_a_full_one_are_mended(tmp_path: Path) -> None:
    healthy = queue_files(golden.store("small-files-4.9"))
    for name in ("hole-4.9", "phantom-4.9"):
        root = golden.extract(name, tmp_path)
        (done,) = rebuild(root)
        assert queue_files(root) == healthy
        assert bool(done.made) == (name == "hole-4.9")
        assert bool(done.taken_away) == (name == "phantom-4.9")


def test_what_was_replaced_is_in_the_quarantine(tmp_path: Path) -> None:
    root = golden.extract("torn-half-record-4.9", tmp_path)
    before = queue_files(root)
    (done,) = rebuild(root)
    (run,) = (root / "rmqctl" / "quarantine").iterdir()
    (name,) = done.replaced
    path = f"{done.topic}/{done.queue_id}/{name}"
    assert (run / CONSUMEQUEUE / path).read_bytes() == before[path]
    assert queue_files(root)[path] != before[path]


def test_units_of_deleted_messages_are_fillers_where_their_file_is_lost(tmp_path: Path) -> None:
    root = golden.extract("retention-4.9", tmp_path)
    with StoreView.open(root) as view:
        queues = [queue for queue in view.queues() if view.min_offset_in_queue(*queue)]
        bounds = {queue: view.queue_bounds(*queue) for queue in queues}
    lost = [queue for queue in queues if bounds[queue][0] < bounds[queue][1]]
    assert lost
    for topic, queue_id in lost:
        shutil.rmtree(root / CONSUMEQUEUE / topic / str(queue_id))
    rebuild(root)
    with StoreView.open(root) as view:
        assert {queue: view.queue_bounds(*queue) for queue in queues} == bounds
    for topic, queue_id in lost:
        first = min((root / CONSUMEQUEUE / topic / str(queue_id)).iterdir())
        begin, least = int(first.name), bounds[topic, queue_id][0] * 20
        assert least - 1200 < begin <= least
        filler = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
        assert first.read_bytes()[: least - begin] == filler * ((least - begin) // 20)


def test_a_queue_that_the_log_tells_nothing_of_ends_where_it_did(tmp_path: Path) -> None:
    root = golden.extract("retention-4.9", tmp_path)
    (path,) = (root / CONSUMEQUEUE / "GoldenIdle" / "0").iterdir()
    before = path.read_bytes()
    with StoreView.open(root) as view:
        end = view.max_offset_in_queue("GoldenIdle", 0)
    assert end > 4
    with path.open("r+b") as file:
        file.seek(20)
        file.write(b"\x01" * 40)
    (done,) = rebuild(root)
    assert (done.next_after, done.fillers, done.log_from) == (end, 2, None)
    with StoreView.open(root) as view:
        assert view.queue_bounds("GoldenIdle", 0) == (end, end)
    filler = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
    assert path.read_bytes() == before[:20] + filler * 2 + before[60:]
