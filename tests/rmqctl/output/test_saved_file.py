"""Files that users name: whole or untouched, and what else may have that name."""

import os
import stat
import threading
from pathlib import Path

import pytest

from rmqctl.output.saved_file import FileOut, saved_file
from tests.support.cli import run


@pytest.fixture
def store(tmp_path):
    root = tmp_path / "store"
    assert run("store", "init", root, "--small").code == 0
    assert run("produce", "orders", "-S", root, stdin=b"one\ntwo\n").code == 0
    assert run("consume", "orders", "-g", "billing", "-e", "-S", root).code == 0
    return root


WAYS = {
    "export": ("message", "export", "-t", "orders", "--as", "jsonl", "--save"),
    "offsets": ("offset", "export", "--save"),
    "plan": ("offset", "reset", "-g", "billing", "-t", "orders", "--to-earliest", "-n", "--export"),
    "report": ("lag", "report", "--engine", "local", "-o", "json", "--save"),
}


@pytest.mark.parametrize("way", WAYS)
def test_links_lead_somewhere_modes_stay_and_neighbours_live(way, store, tmp_path):
    end, link = tmp_path / "behind.json", tmp_path / "link.json"
    end.write_text("old")
    end.chmod(0o600)
    link.symlink_to(end.name)
    neighbours = [tmp_path / "link.json.tmp", tmp_path / "behind.json.tmp"]
    for neighbour in neighbours:
        neighbour.write_text("mine")
    result = run(*WAYS[way], link, "-S", store)
    assert result.code == 0, result.err
    assert link.is_symlink()
    assert len(end.read_text()) > 10
    assert stat.S_IMODE(end.stat().st_mode) == 0o600
    assert [neighbour.read_text() for neighbour in neighbours] == ["mine", "mine"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_pipe_is_written_not_replaced(way, store, tmp_path):
    pipe, read = tmp_path / "pipe.json", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    result = run(*WAYS[way], pipe, "-S", store)
    reader.join()
    assert result.code == 0, result.err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(read[0]) > 10


def test_an_open_descriptor_is_a_file_too(store, tmp_path):
    reader, writer = os.pipe()
    assert run(*WAYS["export"], f"/dev/fd/{writer}", "-S", store).code == 0
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert len(file.read().splitlines()) == 2


@pytest.mark.slow
def test_a_dash_is_no_file(store, tmp_path):
    result = run("lag", "report", "--engine", "local", "-o", "md", "--save", "-", "-S", store)
    assert result.code == 2, result.out
    assert "'-' is not a file" in result.err


def write_half(path):
    with saved_file(path) as file:
        file.write(b"new")
        raise ValueError("half")


def test_what_fails_leaves_all_as_it_was(tmp_path):
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_text("old")
    with pytest.raises(ValueError, match="half"):
        write_half(path)
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_new_file_is_as_open_as_the_caller_makes_files(tmp_path):
    before = os.umask(0o027)
    try:
        with saved_file(tmp_path / "file") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_the_error_of_a_full_disk_names_the_file(size: int) -> None:
    with pytest.raises(OSError, match="/dev/full"), saved_file(Path("/dev/full")) as file:
        FileOut(file).write("x" * size)
