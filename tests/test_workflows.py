"""Workflows run targets of the Makefile, so that what they run can be run on any machine."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rmqctl import __version__

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(path: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_step_runs_a_target_that_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"] for step in steps(path) if "run" in step]
    assert commands
    assert len(commands) + sum("uses" in step for step in steps(path)) == len(steps(path))
    for command in commands:
        make, target, *variables = command.split()
        assert make == "make"
        assert target in targets, command
        assert all("=" in word for word in variables), command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_ends_by_itself_and_may_only_read(path: Path) -> None:
    whole = yaml.safe_load(path.read_text())
    assert whole["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] < 360 for job in whole["jobs"].values())
    writing = {name for name, job in whole["jobs"].items() if "permissions" in job}
    assert writing == ({"publish"} if path.stem == "release" else set())


def test_the_job_that_may_publish_runs_no_code_of_the_project() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert not [step for step in jobs["publish"]["steps"] if "run" in step]
    assert not [step for step in jobs["publish"]["steps"] if "checkout" in step["uses"]]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}


@pytest.mark.parametrize(
    ("tag", "code"), [(f"v{__version__}", 0), (__version__, 2), ("v0.1.0", 2), ("", 2)]
)
def test_a_release_has_the_tag_of_its_version_and_a_date(tag: str, code: int) -> None:
    done = subprocess.run(
        ["make", "-s", "tag-check", f"TAG={tag}", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
