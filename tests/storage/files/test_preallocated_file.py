"""The log's next file is there before it is needed, and a put does not wait for the device."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.errors import CorruptFileError
from storage.files.fs import FileSystem
from storage.files.preallocated_file import PreallocatedFile
from storage.format.names import COMMITLOG, OURS
from storage.store import MessageStore
from tests.support.linux_forms import needs_linux_forms
from tests.support.samples import (
    SMALL,
    START_MS,
    TINY,
    Sample,
    Ticking,
    new_store,
    open_store,
    prepared,
)
from tests.support.watched_fs import WatchedFileSystem

SIZE = 1 << 20
ONLY_THE_LOG = SMALL.with_(mapped_file_size_commit_log=4096)
"""Its log rolls often, queues and index do not."""
WAITS = ("sync", "sync_dir", "sync_all")
ROLLS_AFTER = 20


class Seen(WatchedFileSystem):
    """Notes the calls, as (kind, name)."""

    def __init__(self) -> None:
        super().__init__(lambda one: self.calls.append((one.kind, Path(one.what).name)))
        self.calls: list[tuple[str, str]] = []


def put_until_it_rolls(store: MessageStore, *, ahead: bool) -> None:
    for number in range(ROLLS_AFTER):
        if ahead:
            store._appender._ahead.make()
        store.put(prepared([Sample(f"id-{number}", "T", size=200)]))


def log_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / COMMITLOG).iterdir()}


@needs_linux_forms
def test_a_roll_waits_for_no_device_and_its_flush_syncs_file_then_name(tmp_path: Path) -> None:
    fs = Seen()
    root = new_store(tmp_path / "store", ONLY_THE_LOG)
    with open_store(root, ONLY_THE_LOG, fs=fs) as store:
        store.put(prepared([Sample("first", "T")]))
        del fs.calls[:]
        put_until_it_rolls(store, ahead=True)
        newest = max(log_of(root))
        rolled = fs.calls.index(("link", newest))
        before = fs.calls.index(("create", "nameless"))
        waits = [kind for kind, _ in fs.calls[before:rolled] if kind in WAITS]
        assert waits == ["sync"], "what made the file"
        assert ("sync_dir", COMMITLOG) not in fs.calls
        del fs.calls[:]
        store._flusher.sync_log()
        synced = [call for call in fs.calls if call[0] in WAITS]
        assert synced[-2:] == [("sync", newest), ("sync_dir", COMMITLOG)]


def test_the_store_is_the_same_as_without(tmp_path: Path) -> None:
    logs = []
    for ahead in (False, True):
        root = new_store(tmp_path / f"{ahead}", TINY)
        with open_store(root, TINY, clock=Ticking(START_MS)) as store:
            put_until_it_rolls(store, ahead=ahead)
        logs.append(log_of(root))
        assert not [path for path in (root / OURS).iterdir() if path.name.startswith("new-")]
        modes = {path.stat().st_mode for path in (root / COMMITLOG).iterdir()}
        assert len(modes) == 1
    assert len(logs[0]) > 1
    assert logs[0] == logs[1]


@needs_linux_forms
def test_a_writer_of_many_messages_has_one_and_takes_it_along(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", StoreConfig())
    store = MessageStore.open(root, StoreConfig(flush_interval_commit_log_ms=3_600_000))
    held = {link.readlink() for link in open_links()}
    for number in range(3_000):
        store.put_message(Sample(f"id-{number}", "T").inner())
        if number == 10:
            store._flush_service.tick()
            assert store._appender._ahead.take() is None, "few messages need none"
    store._flush_service.tick()
    made = [link for link in open_links() if link.readlink() not in held]
    nameless = [link.stat() for link in made if not link.stat().st_nlink]
    assert [found.st_size for found in nameless] == [StoreConfig().mapped_file_size_commit_log]
    assert nameless[0].st_blocks * 512 >= 16 << 20
    store.close()
    assert not [link for link in open_links() if not link.stat().st_nlink and link in made]


def open_links() -> list[Path]:
    """What this process holds open of files."""
    return [link for link in Path("/proc/self/fd").iterdir() if link.is_file()]


class NoNameless(FileSystem):
    def open_nameless(self, folder: Path) -> int:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(folder))


class NoProc(FileSystem):
    def give_name(self, fd: int, path: Path) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/proc/self/fd")


@pytest.mark.parametrize("lacking", [NoNameless, NoProc])
def test_a_system_that_can_not_do_so_rolls_as_ever(
    lacking: type[FileSystem], tmp_path: Path
) -> None:
    root = new_store(tmp_path / "store", TINY)
    with open_store(root, TINY, fs=lacking()) as store:
        put_until_it_rolls(store, ahead=True)
    assert len(log_of(root)) > 1


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", TINY)
    store = open_store(root, TINY)
    store.put(prepared([Sample("first", "T")]))
    (root / COMMITLOG / f"{4096:020d}").write_bytes(b"somebody's")
    with pytest.raises(CorruptFileError, match="4096"):
        put_until_it_rolls(store, ahead=True)
    store.close()


@needs_linux_forms
def test_there_is_one_at_most_and_none_after_closing(tmp_path: Path) -> None:
    fs = FileSystem()
    ahead = PreallocatedFile(fs, tmp_path, SIZE, 4096)
    assert ahead.take() is None
    ahead.make()
    ahead.make()
    fd = ahead.take()
    assert fd is not None
    assert (fs.size(fd), fs.links(fd)) == (SIZE, 0)
    assert ahead.take() is None
    fs.close(fd)
    ahead.make()
    ahead.close()
    ahead.make()
    assert ahead.take() is None
    assert list(tmp_path.iterdir()) == []
