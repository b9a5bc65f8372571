"""The README's tour is what happens when it is typed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def tour() -> list[tuple[str, str]]:
    """The commands of the tour, each with the output that the README shows."""
    text = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"```console\n(.*?)```", text, re.DOTALL)
    assert block
    steps = re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (step.partition("\n") for step in steps)]


@pytest.mark.slow
def test_the_tour_prints_what_the_readme_shows(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "rmqctl"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m rmqctl "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "somewhere"
    folder.mkdir()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    assert len(tour()) > 8
    for command, shown in tour():
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout == shown, command


def test_every_command_is_named_in_the_readme():
    from rmqctl.cli.tree import TREE, CommandRef

    text = (ROOT / "README.md").read_text("utf-8")
    for name, entry in TREE.items():
        if isinstance(entry, CommandRef):
            assert f"`{name}" in text or f" {name} " in text or name == "version", name
        else:
            assert f"`{name} {next(iter(entry.verbs))}`" in text, name
            for verb in list(entry.verbs)[1:]:
                assert f"`{verb}`" in text, f"{name} {verb}"
