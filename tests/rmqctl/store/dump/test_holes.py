"""A file that a damaged length has made huge: its holes are not read."""

import os
import time

import pytest

from rmqctl.store.dump.holes import Holes
from tests.support.cli import run

HUGE = 8 << 30


@pytest.fixture
def huge(tmp_path):
    root = tmp_path / "s"
    assert run("store", "init", root, "--small").code == 0
    assert run("produce", "t", "-S", root, "--queue", 0, stdin=b"a\nb\nc\n").code == 0
    [path] = (root / "consumequeue" / "t" / "0").iterdir()
    os.truncate(path, HUGE)
    return root, path


@pytest.mark.parametrize("shape", [[], ["--as", "hex"]], ids=["units", "hex"])
def test_a_huge_queue_file_is_dumped_in_moments(huge, shape):
    root, path = huge
    begun = time.process_time()
    found = run("store", "dump", path.relative_to(root), "-S", root, "-o", "jsonl", *shape)
    assert time.process_time() - begun < 5
    assert found.code == 0
    rows = found.out.splitlines()
    assert len(rows) < 30
    assert '"size":' in rows[0] or "commitLogOffset" in rows[0]


def test_units_across_the_border_of_a_hole_are_read(huge):
    root, path = huge
    with path.open("r+b") as file:
        file.seek((1 << 30) + 4)
        file.write(b"\1")
    rows = run("store", "dump", path.relative_to(root), "-S", root, "-o", "json").json()
    kinds = [(row["kind"], row["position"], row["units"]) for row in rows]
    at = ((1 << 30) + 4) // 20
    assert kinds[3:5] == [("EMPTY", 60, at - 3), ("UNIT", at * 20, 1)]
    assert sum(units for _, _, units in kinds[:-1]) == HUGE // 20


def test_holes_of_a_file(tmp_path):
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.write(b"x" * 4096)
        file.seek(1 << 20)
        file.write(b"y" * 4096)
    os.truncate(path, 2 << 20)
    holes = Holes(path, 2 << 20)
    if holes.used == 2 << 20:
        pytest.skip("needs a file system that keeps holes")
    assert [holes.next_data(at) for at in (0, 4095, 4096, 1 << 20)] == [0, 4095, 1 << 20, 1 << 20]
    assert holes.next_data((1 << 20) + 4096) == 2 << 20
    assert holes.next_data(3 << 20) == 3 << 20
