"""A recovery that ends early: the next opening goes on from what it left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.format.names import file_name
from tests.support.copies import copy_store
from tests.support.crash import fast_folder
from tests.support.samples import TINY, Sample, batch, new_store, open_store, prepared
from tests.support.watched_fs import Instant, WatchedFileSystem


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as found:
        yield found


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_a_recovery_that_gives_up_log_files_can_end_at_each_instant(
    folder: Path, ahead: int
) -> None:
    """The newest log file lost its records in a power loss; units of them did reach the device.

    A Java broker had made more files ahead.
    """
    root = new_store(folder / "store")
    with open_store(root) as store:
        sent = 0
        while store.log_end < TINY.mapped_file_size_commit_log + 600:
            store.put(prepared([Sample(f"{sent}", "T", sent % 2)]))
            sent += 1
        cut = copy_store(root, folder / "cut")
    newest = max((cut / "commitlog").iterdir())
    size = TINY.mapped_file_size_commit_log
    given_up = [newest.with_name(file_name(int(newest.name) + i * size)) for i in range(ahead + 1)]
    for path in given_up:
        path.write_bytes(bytes(size))
    images: list[Path] = []

    def copy(instant: Instant) -> None:
        if instant.kind in {"unlink", "rename", "write", "sync"}:
            images.append(copy_store(cut, folder / f"image-{instant.number}"))

    with open_store(cut, fs=WatchedFileSystem(copy)) as store:
        expected = {queue_id: store.view.max_offset_in_queue("T", queue_id) for queue_id in (0, 1)}
    assert 0 < sum(expected.values()) < sent
    assert not any(path.exists() for path in given_up)
    for image in images:
        with open_store(image) as store:
            found = {queue: store.view.max_offset_in_queue("T", queue) for queue in (0, 1)}
        assert found == expected, image.name


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize("cut", [0, 80, 240])
def test_a_queue_file_of_another_length_is_made_anew_of_the_whole_log_at_each_instant(
    folder: Path, cut: int, clean: bool
) -> None:
    """The queue is idle: the log files that recovery reads first have no message of it."""
    root = new_store(folder / "store")
    with open_store(root) as store:
        store.put(prepared(batch("idle", 15, "Idle")))
        idle_end = store.log_end
        number = 0
        while store.log_end < idle_end + 4 * TINY.mapped_file_size_commit_log:
            store.put(prepared([Sample(f"{number}", "T", 0)]))
            number += 1
    path = root / "consumequeue" / "Idle" / "0" / file_name(cut)
    os.truncate(path, path.stat().st_size - 20)
    (root / "rmqctl" / "shared").unlink()
    if not clean:
        (root / "abort").touch()
    images: list[Path] = []

    def copy(instant: Instant) -> None:
        if instant.kind in {"unlink", "rename", "write", "sync"}:
            images.append(copy_store(root, folder / f"image-{instant.number}"))

    with open_store(root, fs=WatchedFileSystem(copy)) as store:
        assert store.recovery is not None
        assert any("made anew from the log" in note for note in store.recovery.notes)
    assert images
    for image in [root, *images]:
        with open_store(image) as store:
            end = store.view.max_offset_in_queue("Idle", 0)
            found = [
                one.queue_offset
                for offset in range(15)
                for one in store.view.get_message("Idle", 0, offset, 1).messages
            ]
        assert (end, found) == (15, list(range(15))), image.name
