"""Snapshots from strangers: nothing in them is trusted, and the target stays as it was."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import tarfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage.configs.checksummed_json import seal
from storage.errors import (
    CorruptFileError,
    DamagedSnapshotError,
    SnapshotTooLargeError,
    StoreError,
    StoreNotFoundError,
)
from storage.files.fs import FileSystem
from storage.format.crc import crc_after_zeros
from storage.store import MessageStore
from storage.tools.snapshot.manifest import MAX_MANIFEST
from storage.tools.snapshot.restore import restore_snapshot
from storage.tools.snapshot.snapshot import take_snapshot
from storage.tools.snapshot.snapshot_source import open_snapshot, verify
from tests.support.cli import run
from tests.support.samples import SMALL, Sample, open_store, prepared
from tests.support.users import User, as_user

PIB = 1 << 50
ME = User(os.geteuid(), os.getegid(), groups=tuple(os.getgroups()))
MOST_MEMORY = 300 << 20


def manifest(files: list[list[Any]], **other: Any) -> bytes:
    entry = {
        "version": 1,
        "at_timestamp": 1,
        "source": "/s",
        "log_min": 0,
        "log_end": 0,
        "whole": False,
        "sizes": {
            "mapped_file_size_commit_log": 4096,
            "mapped_file_size_consume_queue": 2000,
            "max_hash_slot_num": 10,
            "max_index_num": 40,
            "message_index_enable": True,
        },
        "queues": [],
        "files": files,
    }
    return seal(entry | other) + b"\n"


def header(name: str, size: int, kind: bytes = b"0", /, **pax: str) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    info.pax_headers = pax
    return info.tobuf(tarfile.PAX_FORMAT)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def sparse(name: str, size: int) -> bytes:
    """A member that is one hole, as write_archive writes it."""
    names = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name,
             "GNU.sparse.realsize": str(size)}  # fmt: skip
    return header(f"a/GNUSparseFile.0/{size}", 512, **names) + padded(f"1\n{size}\n0\n".encode())


def archive(path: Path, *members: bytes, files: list[list[Any]] | None = None) -> Path:
    said = manifest(files or [])
    data = header("a/manifest.json", len(said)) + padded(said) + b"".join(members) + bytes(1024)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def packed_manifest(path: Path, more: Callable[[], bytes]) -> Path:
    """An archive whose manifest has a member more, with the right sum."""
    body = manifest([])[len(seal({})) - 3 : -2]
    body = body[:-1] + b',"more":' + more() + b"}"
    said = b'{"crc":"%08x","entry":%s}' % (zlib.crc32(body), body)
    assert len(said) <= MAX_MANIFEST
    path.write_bytes(gzip.compress(header("a/manifest.json", len(said)) + padded(said), 1))
    return path


def hole_crc(size: int) -> int:
    return crc_after_zeros(0, size)


def many(head: bytes, size: int, path: Path, *, first: bool = False) -> Path:
    """An archive with a member of so many zeros, in a few kilobytes.

    A MiB is packed once and stands there as often as needed: no part refers to one before it.
    """
    said = manifest([["commitlog/x", 4096, 0, 0]])
    before = b"" if first else header("a/manifest.json", len(said)) + padded(said)
    before += head
    size += 1024
    count, rest = divmod(size, 1 << 20)
    path.write_bytes(
        b"\x1f\x8b\x08\0\0\0\0\0\2\xff"  # the head of gzip
        + deflated(before, zlib.Z_FULL_FLUSH)
        + deflated(bytes(1 << 20), zlib.Z_FULL_FLUSH) * count
        + deflated(bytes(rest), zlib.Z_FINISH)
        + crc_after_zeros(zlib.crc32(before), size).to_bytes(4, "little")
        + (len(before) + size).to_bytes(4, "little")
    )
    return path


def deflated(data: bytes, end: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush(end)


def pax_of(size: int) -> bytes:
    return header("a/x", size, b"x")


MORE: dict[str, Callable[[], bytes]] = {
    "13 million texts": lambda: b"[" + b'"ab",' * 12_900_000 + b"0]",
    "33 million numbers": lambda: b"[" + b"1," * 33_000_000 + b"0]",
    "4 million members": lambda: b"{%s}" % b",".join(b'"%x":1' % n for n in range(4_000_000)),
    "5 million rows": lambda: b"[%s]" % b",".join([b'["T",0,0,0]'] * 5_000_000),
    "4 million empty rows": lambda: b"[" + b'"[[[[[[[[[[",[],' * 4_000_000 + b"0]",
}
CASES: dict[str, Callable[[Path], Path]] = {
    "a hole of 1 PiB": lambda p: archive(
        p / "x.tar", sparse("a/commitlog/x", PIB), files=[["commitlog/x", 4096, 0, 0]]
    ),
    "a hole of 1 PiB that the manifest names": lambda p: archive(
        p / "x.tar", sparse("a/commitlog/x", PIB), files=[["commitlog/x", PIB, 0, 0]]
    ),
    "a hole of 8 TiB that the manifest names rightly": lambda p: archive(
        p / "x.tar",
        sparse("a/commitlog/x", 1 << 43),
        files=[["commitlog/x", 1 << 43, hole_crc(1 << 43), 0]],
    ),
    "800 MiB for 4 KiB": lambda p: many(header("a/commitlog/x", 800 << 20), 800 << 20, p / "x.tgz"),
    "a manifest of 700 MiB": lambda p: many(
        header("a/manifest.json", 700 << 20), 700 << 20, p / "x.tgz", first=True
    ),
    "a pax header of 400 MiB": lambda p: many(pax_of(400 << 20), 400 << 20, p / "x.tgz"),
    "a pax header of 400 MiB in front": lambda p: many(
        pax_of(400 << 20), 400 << 20, p / "x.tgz", first=True
    ),
    "a name of 400 MiB": lambda p: many(
        header("././@LongLink", 400 << 20, b"L"), 400 << 20, p / "x.tgz", first=True
    ),
    "a link name of 400 MiB": lambda p: many(
        header("././@LongLink", 400 << 20, b"K"), 400 << 20, p / "x.tgz"
    ),
    "headers without an end": lambda p: archive(
        p / "x.tar.gz", *[header("a/x", 512, b"x") + padded(b"12 path=a/b\n")] * 5000
    , files=[["commitlog/x", 1, 0, 0]]),
    "a size that a pax header tells": lambda p: archive(
        p / "x.tar", header("a/commitlog/x", 5, size=str(PIB)), files=[["commitlog/x", 5, 0, 0]]
    ),
    **{
        f"a member of type {kind!r}": lambda p, kind=kind: archive(  # type: ignore[misc]
            p / "x.tar", header("a/commitlog/x", 0, kind), files=[["commitlog/x", 0, 0, 0]]
        )
        for kind in (b"1", b"2", b"3", b"4", b"6", b"D", b"M", b"V", b"N")
    },
    "a map of a million pieces": lambda p: archive(
        p / "x.tar",
        header("a/x", 1 << 30, **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
               "GNU.sparse.name": "a/commitlog/x", "GNU.sparse.realsize": "9"})
        + padded(b"99999999\n" + b"0\n1\n" * 90),
        files=[["commitlog/x", 9, 0, 0]],
    ),
    **{
        f"a manifest of {what}": lambda p, more=more: packed_manifest(  # type: ignore[misc]
            p / "x.tar.gz", more
        )
        for what, more in MORE.items()
    },
    "a map of holes before the manifest": lambda p: many(
        header("a/x", 800 << 20, **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
               "GNU.sparse.name": "a/manifest.json", "GNU.sparse.realsize": "9"}),
        800 << 20, p / "x.tgz", first=True
    ),
    "an archive that ends": lambda p: archive(
        p / "x.tar", header("a/commitlog/x", 5000), files=[["commitlog/x", 5000, 0, 0]]
    ),
}  # fmt: skip


LONG = frozenset(
    {
        *("a pax header of 400 MiB in front", "a link name of 400 MiB"),
        *("a manifest of 33 million numbers", "a manifest of 4 million members"),
        "a manifest of 5 million rows",
    }
)
"""Dear ones of which another one is alike."""
assert CASES.keys() >= LONG


def try_all(path: Path, target: Path) -> str:
    """The message to the user; the memory that it may take is limited."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, resource.RLIM_INFINITY))
    said = ""
    for more in ((), ("--execute", "--yes")):
        done = run("store", "restore", path, "-S", target, *more)
        assert done.code in (3, 4), done
        said = done.err
    return said


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in CASES]
)
def test_an_archive_of_harm_is_refused(tmp_path: Path, name: str) -> None:
    path = CASES[name](tmp_path)
    target = tmp_path / "target"
    began = time.monotonic()
    said = as_user(ME, try_all, path, target)
    errors = [line for line in said.splitlines() if line.startswith("rmqctl: ")]
    assert len(errors) == 1, "one sentence, behind the line that names the store"
    assert "internal" not in said
    assert time.monotonic() - began < 20
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name]


@pytest.mark.parametrize(
    "wrong",
    [
        {"files": 1}, {"files": [1]}, {"files": [["a", "b", 1, 1]]}, {"files": [["a", -1, 1, 1]]},
        {"files": [["../a", 1, 1, 1]]}, {"files": [["/a", 1, 1, 1]]},
        {"files": [["a//b", 1, 1, 1]]},
        {"files": [["a", 1, 1, 1], ["a", 1, 1, 1]]}, {"files": [["a", 0, 0, 1], ["a/b", 0, 0, 1]]},
        {"files": [["\ud800", 1, 1, 1]]}, {"files": [["a" * 300, 1, 1, 1]]},
        {"files": [["a", 1, 1, 1 << 70]]}, {"files": [[None, 1, 1, 1]]}, {"sizes": {}},
        {"sizes": None}, {"queues": [["T", 0]]}, {"queues": [["T", 1 << 40, 0, 0]]},
        {"version": "1"}, {"version": None}, {"whole": 1}, {"log_end": "x"}, {"source": 5},
        {"at_timestamp": True}, {"files": [[[]]] * 5}, {"queues": [[]] * 100},
    ],
)  # fmt: skip
def test_a_manifest_of_other_types_is_damage(tmp_path: Path, wrong: dict[str, Any]) -> None:
    body = json.dumps(json.loads(manifest([]))["entry"] | wrong, separators=(",", ":")).encode()
    (tmp_path / "snap").mkdir()
    line = b'{"crc":"%08x","entry":%s}' % (zlib.crc32(body), body)
    (tmp_path / "snap" / "manifest.json").write_bytes(line)
    with pytest.raises(DamagedSnapshotError):
        open_snapshot(tmp_path / "snap")
    done = run("store", "restore", tmp_path / "snap", "-S", tmp_path / "t", "--execute", "--yes")
    assert done.code == 4, done
    assert not (tmp_path / "t").exists()


def test_a_manifest_of_a_folder_has_a_limit_too(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").touch()
    os.truncate(tmp_path / "manifest.json", MAX_MANIFEST + 1)
    with pytest.raises(DamagedSnapshotError, match="more than"):
        open_snapshot(tmp_path)


def taken(tmp_path: Path) -> tuple[Path, Path]:
    root = tmp_path / "s"
    MessageStore.create(root, SMALL)
    with open_store(root, SMALL) as store:
        for number in range(12):
            store.put(prepared([Sample(f"k{number}", "T", number % 2, size=700)]))
    snapshot = tmp_path / "monday.tar"
    take_snapshot(root, snapshot, now_ms=1)
    return root, snapshot


def test_archives_of_our_own_with_holes_are_good(tmp_path: Path) -> None:
    _, snapshot = taken(tmp_path)
    with tarfile.open(snapshot) as tar:
        assert any("GNU.sparse.major" in member.pax_headers for member in tar)
    assert verify(open_snapshot(snapshot)) == []
    restore_snapshot(open_snapshot(snapshot), tmp_path / "new", run="1")
    with MessageStore.open(tmp_path / "new") as store:
        assert store.view.max_offset_in_queue("T", 0) == 6


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs tar on PATH")
@pytest.mark.parametrize("options", [["-S"], ["-S", "-Hpax"], [], ["-Hgnu"]])
def test_archives_that_tar_packed_again_are_good(tmp_path: Path, options: list[str]) -> None:
    _, snapshot = taken(tmp_path)
    subprocess.run(["tar", "-xf", snapshot, "-C", tmp_path], check=True)
    names = ["monday/manifest.json"]
    names += [f"monday/{file.path}" for file in open_snapshot(snapshot).manifest.files]
    again = tmp_path / "again.tar"
    subprocess.run(["tar", "-c", *options, "-f", again, "-C", tmp_path, *names], check=True)
    assert verify(open_snapshot(again)) == []
    restore_snapshot(open_snapshot(again), tmp_path / "new", run="1")


class SmallDisk(FileSystem):
    def free_bytes(self, path: Path) -> int:
        return 10_000


def test_more_than_there_is_room_for_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    root, snapshot = taken(tmp_path)
    take_snapshot(root, tmp_path / "folder", now_ms=1, copies_only=True)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    for source in (snapshot, tmp_path / "folder"):
        with pytest.raises(SnapshotTooLargeError, match="has room for 10000"):
            restore_snapshot(open_snapshot(source), root, run="1", fs=SmallDisk())
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    assert not (tmp_path / ".s.partial").exists()


def test_a_link_in_the_folder_of_a_snapshot_is_no_file(tmp_path: Path) -> None:
    root, _ = taken(tmp_path)
    take_snapshot(root, tmp_path / "folder", now_ms=1, copies_only=True)
    log = next((tmp_path / "folder/commitlog").iterdir())
    log.rename(tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedSnapshotError, match="no file"):
        restore_snapshot(open_snapshot(tmp_path / "folder"), tmp_path / "new", run="1")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("times", [60, pytest.param(3000, marks=pytest.mark.long)])
@pytest.mark.slow
def test_mutated_archives_end_in_a_sentence(tmp_path: Path, times: int) -> None:
    _, snapshot = taken(tmp_path)
    assert as_user(ME, fuzz, snapshot.read_bytes(), tmp_path / "fuzz", times) >= times // 4


def fuzz(whole: bytes, folder: Path, times: int) -> int:
    """How many were refused."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, resource.RLIM_INFINITY))
    folder.mkdir()
    chance = random.Random(times)
    places = [at for at in range(0, len(whole), 512) if whole[at + 257 : at + 262] == b"ustar"]
    refused = 0
    for number in range(times):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            if chance.random() < 0.7:  # in a header, whose sum is put right
                head = chance.choice(places)
                field, end = chance.choice(((0, 100), (124, 136), (156, 157), (345, 500), (0, 512)))
                data[head + chance.randrange(field, end)] = chance.choice(
                    b"\x00\x01 07129xgLKS\xff"
                )
                total = sum(data[head : head + 148]) + 256 + sum(data[head + 156 : head + 512])
                data[head + 148 : head + 156] = b"%06o\0 " % total
            else:
                data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        path = folder / f"{number}.tar"
        path.write_bytes(data)
        began = time.monotonic()
        try:
            source = open_snapshot(path)
            if verify(source):
                refused += 1
            else:
                restore_snapshot(source, folder / "t", run="1")
        except (CorruptFileError, StoreNotFoundError):
            refused += 1
        except StoreError as error:
            raise AssertionError(f"{number}: {error!r}") from error
        finally:
            path.unlink()
            shutil.rmtree(folder / "t", ignore_errors=True)
        assert time.monotonic() - began < 20
        assert not list(folder.glob(".*")), number
    return refused


@pytest.mark.slow
def test_a_stream_is_read_as_far_as_it_is_asked(tmp_path: Path) -> None:
    """A member that is not what the manifest says is not read at all: it may even be missing."""
    path = many(header("a/commitlog/x", 800 << 20), 800 << 20, tmp_path / "x.tgz")
    assert 1 << 19 < path.stat().st_size < 1 << 20
    for length in (path.stat().st_size, 32 << 10):
        os.truncate(path, length)
        source = open_snapshot(path)
        with pytest.raises(DamagedSnapshotError, match="838860800 bytes, the manifest says 4096"):
            next(source.files())
