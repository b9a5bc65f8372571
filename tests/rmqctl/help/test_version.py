import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import rmqctl
from hatch_build import commit_of
from rmqctl.help import version_command
from storage.coordination.shared_state import SHARED_STATE_VERSION
from tests.support.cli import ROOT, run
from tests.support.compiled import compiled


def test_json_names_the_version_the_compiled_parts_and_the_formats():
    found = run("version", "-o", "json").json()
    assert found["rmqctl"] == rmqctl.__version__
    assert found["own_formats"]["shared"] == SHARED_STATE_VERSION
    assert found["python"] == platform.python_version()


@pytest.mark.slow
@pytest.mark.parametrize("pure", ["1", "0"])
def test_compiled_parts_are_those_in_use(pure):
    done = subprocess.run(
        [sys.executable, "-m", "rmqctl", "version", "-o", "json"],
        env={**os.environ, "RMQCTL_PURE": pure, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    in_use = compiled is not None and pure == "0"
    wanted = ["storage", "client", "rmqctl"] if in_use else []
    assert json.loads(done.stdout)["compiled"] == wanted


@pytest.mark.parametrize(
    ("noted", "commit"),
    [
        ('{"commit": "fef87f93"}', "fef87f93"),
        ("{}", None),
        ("[1]", None),
        ('{"commit": 7}', None),
        ("\udcff", None),
    ],
)
def test_the_commit_is_what_the_build_has_noted_or_unknown(tmp_path, monkeypatch, noted, commit):
    note = tmp_path / "build.json"
    note.write_text(noted, "utf-8", "surrogateescape")
    monkeypatch.setattr(version_command, "_BUILT", note)
    assert version_command.built_from() == commit


def test_a_checkout_names_no_commit_since_its_files_may_differ_from_it():
    assert run("version", "-o", "json").json()["commit"] is None


def test_the_build_notes_the_commit_and_whether_files_differ_from_it(tmp_path):
    def git(*args: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", *identity, "-C", str(tmp_path), *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert commit_of(tmp_path) is None
    (tmp_path / "file").write_text("one")
    git("init")
    git("add", "file")
    git("commit", "-m", "one")
    head = git("rev-parse", "HEAD")
    git("tag", "v9.9.9")
    assert commit_of(tmp_path) == head
    (tmp_path / "file").write_text("two")
    assert commit_of(tmp_path) == f"{head}-dirty"
    inside = Path(tmp_path / "another")
    inside.mkdir()
    assert commit_of(inside) is None  # the checkout around it is not its own
