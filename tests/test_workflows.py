"""Workflows run targets of the Makefile, so that what they run can be run on any machine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

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
