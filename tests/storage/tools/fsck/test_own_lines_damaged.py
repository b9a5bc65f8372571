"""Damaged lines of rmqctl's own files whose other lines need them: repair makes nothing up."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.configs.offset_samples import OffsetSamples
from storage.configs.redrive_runs import RedriveRuns
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.rich_store import SIZES

pytestmark = pytest.mark.slow
T = 1_700_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "s"
    MessageStore.create(root, SIZES)
    MessageStore.open(root).close()
    return root


def damage_line(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    line = bytearray(lines[number])
    line[len(line) // 2] ^= 0x08
    path.write_bytes(b"".join([*lines[:number], bytes(line), *lines[number + 1 :]]))


def repair(root: Path) -> str:
    """Repair a store in which damage is found; what was said."""
    assert run("store", "fsck", "-S", root).code == 4
    repaired = run("store", "repair", "--execute", "--yes", "-S", root)
    assert repaired.code == 0, repaired
    assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0
    return repaired.out + repaired.err


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_samples_after_a_damaged_one_stay_unknown(root: Path, damaged: int) -> None:
    """What the others have is not known without it: a line has what changed since the last one."""
    samples = OffsetSamples(root)
    for number in range(3):
        offsets = {"t@g": {0: number}, "t@h": {0: 5, 1: number // 2}}
        assert samples.append(offsets, {"t": {0: 9}}, T + number)
    (path,) = samples.files()
    damage_line(path, damaged)
    before = OffsetSamples(root).read(0)
    repair(root)
    after = OffsetSamples(root).read(0)
    assert after.committed("t@g", 0) == [(T + number, number) for number in range(damaged)]
    for place in (("t@g", 0), ("t@h", 0), ("t@h", 1)):
        assert after.committed(*place) == before.committed(*place)
    assert after.watched == before.watched
    assert OffsetSamples(root).append({"t@g": {0: 7}}, {}, T + 10)


def test_a_redrive_without_its_task_goes_to_the_quarantine(root: Path) -> None:
    assert run("produce", "%DLQ%g", "-c", "5", "--template", "x", "-Q", "0", "-S", root).code == 0
    assert run("topic", "create", "t", "-S", root).code == 0
    sent = run("dlq", "redrive", "g", "--all", "--target", "t", "--yes", "-S", root)
    assert sent.code == 0, sent
    runs = RedriveRuns(root)
    (name,) = runs.names()
    damage_line(runs.path_of(name), 0)
    assert "sent again by the next one" in repair(root)
    assert list(runs.names()) == []
    assert [*root.rglob(runs.path_of(name).name)], "it is kept in the quarantine"


def test_a_redrive_without_a_receipt_keeps_the_others(root: Path) -> None:
    assert run("produce", "%DLQ%g", "-c", "5", "--template", "x", "-Q", "0", "-S", root).code == 0
    assert run("topic", "create", "t", "-S", root).code == 0
    assert run("dlq", "redrive", "g", "--all", "--target", "t", "--yes", "-S", root).code == 0
    runs = RedriveRuns(root)
    (name,) = runs.names()
    path = runs.path_of(name)
    whole = path.read_bytes().splitlines()
    damage_line(path, 2)
    repair(root)
    assert path.read_bytes().splitlines() == [*whole[:2], *whole[3:]]
