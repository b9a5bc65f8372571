"""An error of an open file says which file it is, and what was done to it."""

import os

import pytest

from storage.files.fs import FileSystem
from tests.support.linux_forms import needs_linux_forms

CALLS = {
    "writing": lambda fs, fd: fs.write(fd, b"x", 0),
    "setting its length": lambda fs, fd: fs.set_length(fd, 5),
    "reserving blocks": lambda fs, fd: fs.reserve(fd, 0, 5),
    "reading": lambda fs, fd: fs.read(fd, 5, -1),
    "mapping": lambda fs, fd: fs.map(fd, 4096, writable=True),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    return path


@needs_linux_forms
@pytest.mark.parametrize("doing", CALLS)
def test_a_call_that_fails_names_the_file_and_what_it_did(path, doing):
    fs = FileSystem()
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(OSError) as caught:  # noqa: PT011 - its number depends on the call
            CALLS[doing](fs, fd)
    finally:
        os.close(fd)
    assert caught.value.filename == str(path)
    assert caught.value.__notes__ == [doing]


@needs_linux_forms
def test_a_pipe_is_no_place_to_look_for_data(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OSError, match="Illegal seek") as caught:
            FileSystem().data_ranges(fd, 0, 5)
    finally:
        os.close(fd)
    assert caught.value.filename == str(path)
    assert caught.value.__notes__ == ["looking for data"]


def test_a_pipe_cannot_be_synced_and_has_no_path():
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="Invalid argument") as caught:
            FileSystem().sync(writing)
    finally:
        os.close(reading)
        os.close(writing)
    assert caught.value.filename is None
    assert caught.value.__notes__ == ["syncing"]


@needs_linux_forms
def test_of_a_file_that_is_gone_the_folder_is_named(path):
    fd = os.open(path, os.O_RDONLY)
    path.unlink()
    try:
        with pytest.raises(OSError, match="Bad file descriptor") as caught:
            FileSystem().write(fd, b"x", 0)
    finally:
        os.close(fd)
    assert caught.value.filename == str(path.parent)


def test_a_closed_descriptor_is_still_an_error_of_the_call(path):
    fd = os.open(path, os.O_RDONLY)
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        FileSystem().sync(fd)
    assert caught.value.filename is None
