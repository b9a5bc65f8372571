"""A whole file is read up to a size, and only a file: nothing waits, and nothing grows."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.files.bounded import read_at, read_bounded, read_first, read_with_status

MOST = 100


def file_of(folder: Path, size: int) -> Path:
    path = folder / "file"
    path.write_bytes(bytes(range(256)) * (size // 256) + bytes(range(size % 256)))
    return path


@pytest.mark.parametrize("size", [0, 1, MOST - 1, MOST])
def test_a_file_up_to_the_limit_is_read_whole(size: int, tmp_path: Path) -> None:
    path = file_of(tmp_path, size)
    assert read_bounded(path, MOST) == path.read_bytes()
    data, status = read_with_status(path, MOST)
    assert len(data) == status.st_size == size


def test_a_file_of_several_pieces_is_read_whole(tmp_path: Path) -> None:
    path = file_of(tmp_path, 3 << 20)
    assert read_bounded(path) == path.read_bytes()


def test_a_byte_more_than_the_limit_is_refused_with_the_size(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match=f"it has {MOST + 1} bytes"):
        read_bounded(file_of(tmp_path, MOST + 1), MOST)


def test_a_file_that_has_more_than_it_says_is_refused() -> None:
    """Files of /proc say that they have no byte; so does one that grows while it is read."""
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert len(read_bounded(path, 1 << 20)) > MOST
    with pytest.raises(CorruptFileError, match="it is larger"):
        read_bounded(path, MOST)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe, circle, bound = tmp_path / "pipe", tmp_path / "circle", tmp_path / "socket"
    os.mkfifo(pipe)
    circle.symlink_to(circle)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(bound))
        for path in (tmp_path, pipe, circle, bound, Path("/dev/zero")):
            within_a_moment(lambda path=path: refuses(path))


def refuses(path: Path) -> None:
    with pytest.raises(CorruptFileError, match="it is no file"):
        read_bounded(path)


def within_a_moment(call: object) -> None:
    """In a thread of its own: a test must not wait for the writer of a pipe."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            call()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - the caller checks it
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits"
    assert failed == []


def test_the_first_bytes_of_a_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, 50)
    assert read_first(path, 20) == path.read_bytes()[:20]
    assert read_first(path, 80) == path.read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for other in (tmp_path, pipe, Path("/dev/zero"), tmp_path / "none"):
        within_a_moment(lambda other=other: is_not_found(other))


def is_not_found(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_first(path, 20)


def test_a_part_of_a_file_ends_with_it(tmp_path: Path) -> None:
    path = file_of(tmp_path, 90)
    assert read_at(path, 80, 6) == bytes(range(80, 86))
    assert read_at(path, 80, 60) == bytes(range(80, 90))
    assert read_at(path, 90, 6) == b""
    with pytest.raises(FileNotFoundError):
        read_at(tmp_path, 0, 6)
