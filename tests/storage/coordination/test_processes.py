"""Files of dead processes, also after a power loss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.coordination.processes import ProcessEntries, ProcessEntry, ProcessInfo
from storage.errors import StoreNotWritableError


@pytest.mark.parametrize("left", [b"", bytes(20), b'{"groups": [', b"7", b"\xff"])
def test_what_a_power_loss_left_of_a_station_is_that_of_a_dead_one_who_said_nothing(
    tmp_path: Path, left: bytes
) -> None:
    processes = ProcessEntries(tmp_path)
    living = ProcessEntry(processes, {"a": 1})
    processes.path("1-dead", ".life").touch()
    processes.path("1-dead", ".json").write_bytes(left)
    assert processes.dead() == [ProcessInfo("1-dead", {})]
    assert processes.living() == [ProcessInfo(living.name, {"a": 1})]
    processes.remove("1-dead")
    assert processes.dead() == []
    living.close()


def test_a_pipe_in_place_of_a_life_file_is_that_of_a_dead_one(tmp_path: Path) -> None:
    processes = ProcessEntries(tmp_path)
    living = ProcessEntry(processes, {"a": 1})
    os.mkfifo(processes.path("1-dead", ".life"))
    assert processes.living() == [ProcessInfo(living.name, {"a": 1})]
    assert [info.name for info in processes.dead()] == ["1-dead"]
    living.close()


@pytest.mark.parametrize("kind", [".life", ".notes", ".json"])
def test_a_folder_in_place_of_a_file_is_left(tmp_path: Path, kind: str) -> None:
    processes = ProcessEntries(tmp_path)
    processes.path("1-dead", ".life").parent.mkdir(parents=True, exist_ok=True)
    processes.path("1-dead", ".life").touch()
    processes.path("1-dead", kind).unlink(missing_ok=True)
    processes.path("1-dead", kind).mkdir()
    processes.remove("1-dead")
    assert processes.path("1-dead", kind).is_dir()
    assert processes.living() == []


def test_a_station_that_could_not_be_made_does_not_live(tmp_path: Path) -> None:
    processes = ProcessEntries(tmp_path)
    with pytest.raises(TypeError):  # what it says is no JSON, as a full disk would not take it
        ProcessEntry(processes, {"a": object()})
    assert list(processes.folder.glob("[0-9]*")) == []
    blocked = tmp_path / "blocked"
    (blocked / "rmqctl").mkdir(parents=True)
    (blocked / "rmqctl" / "members").touch()
    with pytest.raises(StoreNotWritableError):
        ProcessEntry(ProcessEntries(blocked), {})
