"""Symbolic links that stand where a writer makes its files: what they lead to is never written."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from rmqctl.exit_codes import FAILURE
from rmqctl.output.saved_file import saved_file
from storage.configs.config_file import ConfigFile
from storage.files.creating import (
    create_beside,
    is_temporary,
    open_or_create,
    remove_left,
    replacing,
)
from storage.files.fs import FileSystem
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.samples import TINY, open_store

SECRET = b"a file of another user\n" * 400
OLD_TEMPORARIES = [
    *(f"config/{name}.json{end}" for name in ("topics", "subscriptionGroup", "consumerOffset")
      for end in (".tmp", ".bak.tmp")),
    "rmqctl/offsets.json.tmp", "rmqctl/settings.json.tmp", "rmqctl/deleted.json.tmp",
    "rmqctl/store.json.new", "rmqctl/created.new", "lock.new",
    "rmqctl/new-00000000000000000000", "rmqctl/new-00000000000000065536",
    "rmqctl/new-index", "rmqctl/new-repaired",
]  # fmt: skip


def use(root: Path) -> list[int]:
    """Make files of most kinds."""
    lines = [
        "topic create t --yes",
        "produce t",
        "consume t -g readers -e",
        "broker config set fileReservedTime 50 --yes",
        "topic delete t --confirm t --yes",
    ]
    return [run(*line.split(), "-S", root, stdin=b"hello\n").code for line in lines]


def plant(root: Path, name: str, victim: Path) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(victim)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_bytes(SECRET)
    return path


@pytest.mark.slow
def test_temporary_names_of_former_versions_are_passed_over(tmp_path: Path, victim: Path) -> None:
    root = tmp_path / "s"
    MessageStore.create(root, TINY)
    for name in OLD_TEMPORARIES:
        plant(root, name, victim)
    assert use(root) == [0] * 5
    assert run("store", "repair", "-S", root, "--execute", "--yes").code == 0
    assert victim.read_bytes() == SECRET


@pytest.mark.slow
def test_no_file_of_a_store_is_written_through_a_link(tmp_path: Path, victim: Path) -> None:
    MessageStore.create(tmp_path / "seen", TINY)
    assert use(tmp_path / "seen") == [0] * 5
    seen = {p.relative_to(tmp_path / "seen").as_posix() for p in (tmp_path / "seen").rglob("*")
            if p.is_file()}  # fmt: skip
    seen |= {"abort", "config/topics.json.bak", "rmqctl/changes/00000001.jsonl"}
    assert len(seen) > 15
    for number, name in enumerate(sorted(seen)):
        root = tmp_path / f"s{number}"
        MessageStore.create(root, TINY)
        plant(root, name, victim)
        codes = use(root)
        # What it leads to is damage where it is read: pytest makes errors of the warnings.
        assert FAILURE not in codes or name.endswith((".json", "offsets.log")), (name, codes)
        assert victim.read_bytes() == SECRET, name
        assert victim.stat().st_nlink == 1


@pytest.mark.slow
def test_a_link_to_nothing_makes_nothing(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for number, name in enumerate(
        ("lock", "abort", "checkpoint", "rmqctl/shared", "rmqctl/queues")
    ):
        root = tmp_path / f"s{number}"
        MessageStore.create(root, TINY)
        plant(root, name, nothing)
        use(root)
        assert not nothing.exists(), name


def test_a_settings_file_that_is_a_link_is_replaced_and_keeps_what_it_led_to(
    tmp_path: Path, victim: Path
) -> None:
    path = tmp_path / "config" / "topics.json"
    plant(tmp_path, "config/topics.json", victim)
    assert ConfigFile(path).save({"a": 1})
    assert victim.read_bytes() == SECRET
    assert not path.is_symlink()
    assert ConfigFile(path).load().document == {"a": 1}


def test_saved_files_have_names_that_cannot_be_planted(tmp_path: Path, victim: Path) -> None:
    out = tmp_path / "out.json"
    plant(tmp_path, f".out.json.{os.getpid()}.tmp", victim)
    plant(tmp_path, "out.json.tmp", victim)
    with saved_file(out) as file:
        file.write(b"{}")
        (made,) = [path for path in tmp_path.iterdir() if is_temporary(path.name)]
    assert out.read_bytes() == b"{}"
    assert not made.exists()
    assert victim.read_bytes() == SECRET


def test_what_a_killed_process_left_goes_and_what_lives_stays(tmp_path: Path) -> None:
    target = tmp_path / "topics.json"
    dead_fd, dead = create_beside(target)
    living_fd, living = create_beside(target)
    os.close(dead_fd)
    remove_left(tmp_path)
    assert not dead.exists()
    assert living.exists(), "its writer has it locked"
    fcntl.flock(living_fd, fcntl.LOCK_UN)
    with replacing(target) as file:
        file.write(b"new")
    assert not living.exists(), "the next one who replaces the file removes it"
    os.close(living_fd)
    assert [path.name for path in tmp_path.iterdir()] == ["topics.json"]


def test_an_opening_for_writing_removes_what_was_left(tmp_path: Path) -> None:
    root = tmp_path / "s"
    MessageStore.create(root, TINY)
    left = []
    for name in ("config/topics.json", "rmqctl/offsets.json", "rmqctl/new-index"):
        fd, made = create_beside(root / name)
        os.close(fd)
        left.append(made)
    with open_store(root):
        assert not any(path.exists() for path in left)


def test_a_failed_replacing_leaves_nothing(tmp_path: Path) -> None:
    class Full(FileSystem):
        def sync(self, fd: int) -> None:
            raise OSError(28, "No space left on device")

    path = tmp_path / "topics.json"
    with pytest.raises(Exception, match="No space left"):
        ConfigFile(path, Full()).save({"a": 1})
    with pytest.raises(ValueError, match="mine"), replacing(path):
        raise ValueError("mine")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("before", [None, b"before"])
def test_a_replaced_file_is_on_the_device_before_its_name_and_its_folder_after(
    before: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "topics.json"
    if before is not None:
        path.write_bytes(before)
    synced: list[tuple[str, bytes, bytes | None]] = []
    sync = os.fsync

    def noted(fd: int) -> None:
        name = str(Path(f"/proc/self/fd/{fd}").readlink())
        content = Path(name).read_bytes() if Path(name).is_file() else b""
        kind = "folder" if name == str(tmp_path) else "file"
        synced.append((kind, content, path.read_bytes() if path.exists() else None))
        sync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    with replacing(path) as file:
        file.write(b"new")
    assert synced == [("file", b"new", before), ("folder", b"", b"new")]


def test_two_who_make_one_file_have_one(tmp_path: Path) -> None:
    first, second = open_or_create(tmp_path / "lock"), open_or_create(tmp_path / "lock")
    assert os.fstat(first).st_ino == os.fstat(second).st_ino
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    os.close(first)
    os.close(second)


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "config" / "topics.json"
    path.parent.mkdir()
    path.write_text("{}")
    for mode in (0o600, 0o640, 0o666, 0o444):
        path.chmod(mode)
        ConfigFile(path).save({"a": mode})
        assert path.stat().st_mode & 0o777 == mode
