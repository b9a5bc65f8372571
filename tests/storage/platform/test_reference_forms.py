"""The forms for any POSIX system give what those of Linux give."""

from __future__ import annotations

import errno
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from storage.platform import boot, cloning, mounts, processes, sockets, space, syncing
from tests.support.cli import ROOT
from tests.support.linux_forms import needs_linux_forms
from tests.support.mounting import NEW_MOUNTS, skip_unless_mountable
from tests.support.slim import Slim

BLOCK = 4096
LENGTH = 300_000


def holey(path: Path, seed: int) -> bytes:
    """Write a file with data and holes anywhere; gives its bytes."""
    steps = random.Random(seed)
    with path.open("wb") as file:
        file.truncate(LENGTH)
        for _ in range(steps.randint(0, 6)):
            file.seek(steps.randrange(LENGTH - 9000))
            file.write(steps.randbytes(steps.randint(1, 9000)))
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(12))
def test_reserved_bytes_have_blocks_and_are_the_same(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "file"
    before = holey(path, seed)
    steps = random.Random(seed)
    offset = steps.randrange(LENGTH)
    length = steps.randint(1, LENGTH + 50_000 - offset)
    fd = os.open(path, os.O_RDWR)
    try:
        space._write_zeros(fd, offset, length)
        assert os.fstat(fd).st_size == max(LENGTH, offset + length)
        assert os.pread(fd, LENGTH, 0) == before
        assert not any(os.pread(fd, 1 << 20, LENGTH))
        os.fsync(fd)
        at = offset
        while at < offset + length:
            assert os.lseek(fd, at, os.SEEK_DATA) == at, "a store there could meet a full disk"
            at = os.lseek(fd, at, os.SEEK_HOLE)
    finally:
        os.close(fd)


@pytest.mark.slow
def test_a_full_disk_is_an_error_of_reserving(tmp_path: Path) -> None:
    skip_unless_mountable(tmp_path)
    found = Slim(
        "tests.support.full_disk:reserve_by_zeros", inside=NEW_MOUNTS, folder=str(tmp_path)
    ).result()
    assert found == errno.ENOSPC


@pytest.mark.parametrize("seed", range(12))
def test_data_is_found_by_reading_it(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "file"
    content = holey(path, seed)
    fd = os.open(path, os.O_RDONLY)
    try:
        found = bytearray(LENGTH)
        at: int | None = 0
        while at is not None and (at := space._read_to_data(fd, at)) is not None:
            end = space._read_to_zeros(fd, at)
            assert end > at
            found[at:end] = content[at:end]
            at = end
        assert bytes(found) == content
    finally:
        os.close(fd)


@pytest.mark.slow
def test_every_process_of_a_boot_finds_one_number() -> None:
    code = "from storage.platform.boot import _of_shared_memory; print(_of_shared_memory())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(4)
    ]
    found = {process.communicate()[0].strip() for process in started}
    assert found == {str(boot._of_shared_memory())}
    assert found != {"None"}


def test_another_boot_has_another_number_and_a_strangers_object_none() -> None:
    from _posixshmem import shm_open, shm_unlink  # type: ignore[import-not-found]

    name = f"/rmqctl-test-{os.getpid()}"
    first = boot._number(name)
    assert first is not None
    assert boot._number(name) == first
    shm_unlink(name)  # as a boot does
    try:
        assert boot._number(name) not in (None, first)
        fd = shm_open(name, os.O_RDWR, mode=0o600)
        os.fchmod(fd, 0o622)
        os.close(fd)
        assert boot._number(name) is None, "another user may have written it"
    finally:
        shm_unlink(name)


@pytest.mark.slow
def test_a_full_shared_memory_has_no_number_until_there_is_room(tmp_path: Path) -> None:
    skip_unless_mountable(tmp_path)
    found = Slim("tests.support.full_disk:numbers_of_boots", inside=NEW_MOUNTS).result()
    assert found == [None, [], "a number"]


def fill(folder: sockets.SocketFolder, sending: socket.socket, name: str) -> None:
    while True:
        folder.send(sending, b"!", name)


@needs_linux_forms
@pytest.mark.parametrize("length", [20, 150])
def test_sockets_of_both_forms_reach_each_other(tmp_path: Path, length: int) -> None:
    folder = tmp_path / ("f" * length)
    folder.mkdir()
    forms = sockets._OpenFolder(folder), sockets._NamedFolder(folder)
    for number, (one, two) in enumerate((forms, forms[::-1])):
        waiting, sending = sockets.new_socket(), sockets.new_socket()
        one.bind(waiting, f"{number}")
        two.send(sending, b"sent", f"{number}")
        two.connect(sending, f"{number}")
        sending.send(b"connected")
        assert [waiting.recv(16), waiting.recv(16)] == [b"sent", b"connected"]
        with pytest.raises(BlockingIOError):
            fill(two, sending, f"{number}")
        waiting.close()
        with pytest.raises(ConnectionRefusedError):
            two.send(sending, b"!", f"{number}")
        sending.close()
    for form in forms:
        form.close()


def test_no_link_is_left_of_a_long_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "t"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    folder = tmp_path / ("f" * 150)
    folder.mkdir()
    waiting = sockets.new_socket()
    sockets._NamedFolder(folder).bind(waiting, "0")
    waiting.close()
    assert (folder / "0").is_socket()
    assert not list(place.iterdir())


def test_a_full_queue_is_one_error_on_all_systems() -> None:
    with pytest.raises(BlockingIOError), sockets.full_is_busy():
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
    with pytest.raises(ConnectionRefusedError), sockets.full_is_busy():
        raise ConnectionRefusedError(errno.ECONNREFUSED, "")


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
def test_a_file_is_synced_however_it_is_open(tmp_path: Path, flags: int) -> None:
    path = tmp_path / "file"
    fd = -1
    for content in (b"", b"1", bytes(10_000)):
        path.write_bytes(content)
        fd = os.open(path, flags)
        syncing._sync_by_posix(fd)
        os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        syncing._sync_by_posix(fd)


def test_all_files_of_a_folder_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one/two").mkdir(parents=True)
    (tmp_path / "one/two/file").write_text("3")
    (tmp_path / "file").write_text("1")
    (tmp_path / "link").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(os.path.relpath(tmp_path / "sock"))
    synced = []
    fsync = os.fsync

    def note(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink())
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note)
    syncing._sync_one_by_one(tmp_path)
    names = [str(path.relative_to(tmp_path)) for path in synced]
    assert sorted(names) == [".", "file", "one", "one/two", "one/two/file"]
    assert names[-1] == "."


PRINTED = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
//me@server/share on /Volumes/my share (smbfs, nodev, nosuid, mounted by me)
/dev/vda on / type ext4 (rw,relatime)
host:/x on /data type nfs4 (rw,vers=4.2)
"""


def test_what_mount_prints_is_read_on_all_systems() -> None:
    assert list(mounts.printed_mounts(PRINTED)) == [
        ("/", "apfs"),
        ("/System/Volumes/Data/home", "autofs"),
        ("/Volumes/my share", "smbfs"),
        ("/", "ext4"),
        ("/data", "nfs4"),
    ]


def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_text(
        "/dev/a / ext4 rw 0 0\nhost:/x /data nfs4 rw 0 0\n/dev/b /data/my\\040disk xfs rw 0 0\n"
    )
    kinds = {
        "/etc": "ext4",
        "/data/store": "nfs4",
        "/database": "ext4",
        "/data/my disk/s": "xfs",
    }
    for path, kind in kinds.items():
        assert mounts._of_table(Path(path), table) == kind
    assert mounts._of_table(tmp_path, tmp_path / "none") == ""


@needs_linux_forms
def test_both_forms_name_the_same_file_system(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/"), Path("/dev/shm")):
        assert mounts._of_program(path) == mounts._of_table(path)


@needs_linux_forms
def test_ps_says_what_proc_says() -> None:
    code = "import time; print(1, flush=True)\nwhile time.process_time() < 0.6: pass\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, 19)  # SIGSTOP
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert processes._is_stopped_by_program(process.pid)
        assert processes._is_stopped(process.pid)
        os.kill(process.pid, 18)  # SIGCONT
        assert not processes._is_stopped_by_program(os.getpid())
        found = processes._time_by_program(os.getpid())
        ticks = processes._processor_time(os.getpid())
        assert found is not None
        assert ticks is not None
        assert abs(found / 100 - ticks / os.sysconf("SC_CLK_TCK")) < 2
        process.kill()
    assert processes._time_by_program(process.pid) is None
    assert not processes._is_stopped_by_program(process.pid)


@pytest.mark.parametrize(
    ("text", "hundredths"), [("0:00.25", 25), ("00:01:02", 6200), ("1-02:03:04", 9378400)]
)
def test_times_of_all_kinds_of_ps_are_read(text: str, hundredths: int) -> None:
    found = processes._TIME.match(text)
    assert found is not None
    assert processes.hundredths_of(found) == hundredths


def test_what_cannot_be_done_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not supported"):
        cloning._refuse_clone(0, 1)
    assert not cloning._refuse_exchange(tmp_path, tmp_path)
