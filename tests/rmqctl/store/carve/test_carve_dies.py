"""kill -9 at any instant of a carve: OUT is missing or whole, and a second run completes it."""

import json
import random
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from rmqctl import app
from storage.errors import StoreNotWritableError
from storage.readonly import StoreView
from storage.tools.carve.new_store import staged_folder
from storage.tools.fsck import fsck
from tests.support.aged_store import fill
from tests.support.cli import run, start
from tests.support.crash import Child
from tests.support.every_instant import die_at
from tests.support.same_records import all_messages
from tests.support.watched_fs import WatchedFileSystem


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    lines = (
        {"at": f"-{60 - n}h", "topic": "t", "body": f"n {n}", "queue": n % 2, "key": f"k{n}"}
        for n in range(12)
    )
    fill(root, map(json.dumps, lines))
    return root


def command(source: Path, out: Path) -> list[str]:
    return [
        *("store", "carve", str(out), "-S", str(source), "-t", "t", "--from", "-55h"),
        *("--execute", "--yes", "-q"),
    ]


def judge(out: Path, wanted: list[bytes]) -> bool:
    """Whether it is there; then it must be whole."""
    if not out.exists():
        return False
    with StoreView.open(out) as view:
        assert fsck(view).healthy
        assert [m.body for m in all_messages(view)] == wanted
    return True


def killed_at(source: Path, out: Path, number: int) -> bool:
    def carve(_: object) -> None:
        fs = WatchedFileSystem(lambda instant: die_at(number, instant))
        with patch("rmqctl.admin.store.carve_run.FileSystem", lambda: fs):
            app.main(command(source, out))

    killed, _ = Child(carve).wait()
    return killed


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("step", [49, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_instants_of_a_carve(source, tmp_path, step):
    out = tmp_path / "out"
    assert run(*command(source, out)).code == 0
    with StoreView.open(out) as view:
        wanted = [m.body for m in all_messages(view)]
    assert 5 <= len(wanted) < 12
    shutil.rmtree(out)
    chance = random.Random(7)
    seen = set()
    number = 1
    while killed_at(source, out, number):
        there = judge(out, wanted)
        seen.add(there)
        if not there:
            result = run(*command(source, out))
            assert result.code == 0, result.err
            assert judge(out, wanted)
        shutil.rmtree(out)
        assert not list(tmp_path.glob(".*")), "what the dead one left is gone"
        number += chance.randrange(1, step + 1)
    assert judge(out, wanted)
    assert number > 100
    assert False in seen


@pytest.mark.slow
def test_two_that_make_the_same_store_do_not_meet(source, tmp_path):
    out = tmp_path / "out"
    with staged_folder(out) as folder:
        (folder / "mine").touch()
        process = start(*command(source, out))
        _, err = process.communicate(timeout=60)
        assert process.returncode == 5
        assert b"another rmqctl" in err
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_a_store_that_came_meanwhile_is_not_replaced(tmp_path):
    out = tmp_path / "out"

    def make() -> None:
        with staged_folder(out):
            out.mkdir()
            (out / "theirs").touch()

    with pytest.raises(StoreNotWritableError, match="there already"):
        make()
    assert [path.name for path in out.iterdir()] == ["theirs"]
    assert not list(tmp_path.glob(".*"))
    assert run("store", "info", "-S", out).code == 3
