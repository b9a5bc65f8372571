"""Bytes that repair removes are in the quarantine, and its manifest describes them."""

import json
from zlib import crc32

import pytest

from storage.files.checksum import crc_of
from storage.files.fs import FileSystem
from storage.format.crc import crc_after_zeros
from storage.tools.quarantine import Quarantine
from tests.support.linux_forms import needs_linux_forms

NOW_MS = 1_792_616_340_000
HUGE = 1 << 42


@pytest.fixture
def root(tmp_path):
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "0").write_bytes(bytes(range(256)) * 8)
    return tmp_path


def manifest(quarantine):
    return [
        json.loads(line) for line in (quarantine.folder / "manifest.jsonl").read_text().splitlines()
    ]


def test_bytes_copies_and_moved_files_are_kept_under_the_paths_of_the_store(root):
    whole = (root / "commitlog" / "0").read_bytes()
    quarantine = Quarantine(root, NOW_MS)
    assert not quarantine.folder.exists()
    assert quarantine.folder.parent == root / "rmqctl" / "quarantine"
    piece = quarantine.keep_bytes("commitlog/0", 100, 50, "RECORD_DAMAGED")
    copy = quarantine.keep_copy("commitlog/0", "x")
    moved = quarantine.move("commitlog/0", "LOG_BEHIND_END")
    assert piece == quarantine.folder / "commitlog" / "0@100"
    assert piece.read_bytes() == whole[100:150]
    assert copy.read_bytes() == moved.read_bytes() == whole
    assert not (root / "commitlog" / "0").exists()
    lines = manifest(quarantine)
    assert [(line["kind"], line["position"], line["length"]) for line in lines] == [
        ("bytes", 100, 50),
        ("copied", None, len(whole)),
        ("moved", None, len(whole)),
    ]
    assert {line["crc32"] for line in lines[1:]} == {f"{crc32(whole):08x}"}
    assert [(quarantine.folder / line["kept"]) for line in lines] == [piece, copy, moved]
    assert {line["path"] for line in lines} == {"commitlog/0"}


def test_a_piece_that_reaches_behind_the_file_is_cut_there(root):
    piece = Quarantine(root, NOW_MS).keep_bytes("commitlog/0", 2000, 5000, "why")
    assert len(piece.read_bytes()) == 48


def test_nothing_is_moved_before_the_manifest_is_on_the_device(root):
    class Full(FileSystem):
        def sync(self, fd):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="space"):
        Quarantine(root, NOW_MS, Full()).move("commitlog/0", "why")
    assert (root / "commitlog" / "0").exists()


@needs_linux_forms
def test_holes_are_not_read(root):
    """A damaged length makes a file of terabytes that takes no room."""
    path = root / "commitlog" / "0"
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(HUGE)
    total = crc_after_zeros(crc32(whole), HUGE - len(whole))
    quarantine = Quarantine(root, NOW_MS)
    piece = quarantine.keep_bytes("commitlog/0", 2000, HUGE - 2000, "LOG_FILE_LENGTH")
    copy = quarantine.keep_copy("commitlog/0", "x")
    assert crc_of(path) == total
    moved = quarantine.move("commitlog/0", "x")
    for kept, start in ((piece, 2000), (copy, 0), (moved, 0)):
        assert kept.stat().st_size == HUGE - start
        assert kept.stat().st_blocks < 100
        with kept.open("rb") as file:
            assert file.read(4096) == whole[start:].ljust(4096, b"\0")
    sums = [line["crc32"] for line in manifest(quarantine)]
    behind = crc_after_zeros(crc32(whole[2000:]), HUGE - len(whole))
    assert sums == [f"{behind:08x}", f"{total:08x}", f"{total:08x}"]


def test_a_hole_in_the_middle_counts_in_the_sum(root):
    path = root / "commitlog" / "0"
    with path.open("r+b") as file:
        file.seek(5 << 20)
        file.write(b"after the hole")
    quarantine = Quarantine(root, NOW_MS)
    kept = quarantine.keep_bytes("commitlog/0", 100, 6 << 20, "x")
    assert kept.read_bytes() == path.read_bytes()[100:]
    assert crc_of(path) == crc32(path.read_bytes())
    (line,) = manifest(quarantine)
    assert line["crc32"] == f"{crc32(kept.read_bytes()):08x}"
