"""What Ctrl-C or a failed call in the middle of a change leaves to the next ones."""

from __future__ import annotations

import errno
import gc
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest

from storage.configs import (
    config_file,
    dlq_acks,
    early_deliveries,
    journal,
    pending_commits,
    progress,
)
from storage.configs.pending_commits import PendingCommits, read_notes
from storage.configs.progress_table import QueueProgress
from storage.configs.topics import TopicConfig, topics_file
from storage.coordination import locks
from storage.coordination.locks import LockFile, ProcessLock
from storage.coordination.shared_state import Word
from storage.errors import StoreNotWritableError
from storage.files import fs
from storage.files.fs import FileSystem
from tests.support.broken_off import broken_off
from tests.support.crash import fast_folder, idle_child
from tests.support.samples import TINY, new_store, open_store

PATIENCE_S = 20


def appending(root: Path) -> Callable[[int], object]:
    file = journal.Journal(root)
    return lambda number: file.append({"n": number}, number)


def marking(root: Path) -> Callable[[int], object]:
    file = dlq_acks.DlqAcksFile(root)
    return lambda number: file.mark("%DLQ%g", {0: [(0, 1)], 1: [(number % 9, 9)]})


def committing(root: Path) -> Callable[[int], object]:
    file = progress.ProgressFile(root)
    return lambda number: file.commit({("T@g", 0): QueueProgress(0, number)})


def ending(root: Path) -> Callable[[int], object]:
    file = early_deliveries.EarlyDeliveries(root)
    return lambda number: file.add({0: [(number % 3, 1)]})


@pytest.mark.usefixtures("frozen_objects")
@pytest.mark.slow
# A file that is lost before it has an owner closes itself, with a warning.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io.FileIO:Warning")
@pytest.mark.parametrize(
    ("change_of", "module"),
    [
        (appending, journal),
        (marking, dlq_acks),
        (committing, progress),
        (ending, early_deliveries),
    ],
)
def test_a_change_after_an_interrupted_one_goes_as_ever(
    change_of: Callable[[Path], Callable[[int], object]], module: ModuleType
) -> None:
    numbers = count()
    kept: list[BaseException] = []
    with fast_folder() as folder:
        change = change_of(folder / "s")
        change(next(numbers))

        def change_once() -> None:
            try:
                change(next(numbers))
            except BaseException as error:  # as an interactive interpreter keeps the last one
                kept.append(error)
                raise

        for at in broken_off(change_once, locks, module, config_file, fs):
            done = threading.Event()

            def change_again(done: threading.Event = done) -> None:
                change(next(numbers))
                done.set()

            threading.Thread(target=change_again, daemon=True).start()
            assert done.wait(PATIENCE_S), f"a lock is left by an interrupt at instant {at}"
        assert len(kept) > 15
        kept.clear()
        gc.collect()  # while warnings of a lost file are ignored


def test_a_forked_child_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with ExitStack() as ended:
        with ProcessLock(path).held():
            rival = LockFile(path)
            ended.callback(rival.close)
            assert not rival.try_lock(0)
            ended.enter_context(idle_child())
        assert rival.try_lock(0)


@pytest.mark.parametrize("known", [0, 63], ids=["the first one", "one that the file grows for"])
def test_notes_go_on_after_an_interrupt(tmp_path: Path, known: int) -> None:
    names = count()

    def with_notes() -> PendingCommits:
        made = PendingCommits(tmp_path / f"{next(names)}.notes")
        for number in range(known):
            made.write(("T@g", number), QueueProgress(0, number))
        return made

    made = [with_notes()]

    def write() -> None:
        made[-1].write(("T@g", known), QueueProgress(0, known))

    for at in broken_off(write, pending_commits):
        for number in (known, known + 1):
            made[-1].write(("T@g", number), QueueProgress(0, number))
        assert sorted(read_notes(made[-1].path)) == [
            (("T@g", number), QueueProgress(0, number)) for number in range(known + 2)
        ], f"after an interrupt at instant {at}"
        made.append(with_notes())
    assert len(made) > 10
    for notes in made:
        notes.close()


class _FailsToSyncAFolder(FileSystem):
    def sync_dir(self, path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_settings_that_are_replaced_are_told_of_though_the_sync_fails(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as store:
        words = store._session.shared.words
        file = topics_file(root, _FailsToSyncAFolder())
        table = file.read_for_change(1)
        table.put("T", TopicConfig("T", 2, 2), 1)
        known = words[Word.CONFIGS]
        with pytest.raises(StoreNotWritableError, match="Input/output error"):
            file.save(table)
        assert topics_file(root).read(1).get("T") == TopicConfig("T", 2, 2)
        assert file.read(1).get("T") == TopicConfig("T", 2, 2)
        assert words[Word.CONFIGS] != known, "whoever remembers the settings looks again"
