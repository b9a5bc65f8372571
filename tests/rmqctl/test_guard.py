"""The guard against foreign packages with a name of ours."""

import shutil
import subprocess
import sys

import pytest

from rmqctl.shadowed import SIBLINGS, foreign_packages
from tests.support.cli import ROOT


def test_our_own_packages_pass():
    assert foreign_packages() == {}


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_stray_file_in_the_working_folder_is_named(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "rmqctl", "version"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 78
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert f"{name} is {tmp_path / name}.py" in lines[0]


def test_a_stray_file_does_not_disturb_the_console_script(tmp_path):
    (tmp_path / "client.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rmqctl", "--version"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("damage", ["no init", "gone"])
@pytest.mark.slow
def test_a_half_deleted_package_is_named(tmp_path, damage):
    for name in ("rmqctl", *SIBLINGS):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    if damage == "gone":
        shutil.rmtree(tmp_path / "analytics")
    else:
        (tmp_path / "analytics/__init__.py").unlink()
    done = subprocess.run(
        [sys.executable, "-S", "-m", "rmqctl", "version"],  # -S: no editable install
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
    )
    expected = "nothing" if damage == "gone" else "a folder without __init__.py"
    assert done.returncode == 78
    assert f"analytics is {expected}" in done.stderr
