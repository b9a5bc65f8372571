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


@pytest.mark.slow
def test_the_python_program_runs_as_it_stands_in_an_empty_folder(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "program.py").write_text(program)
    folder = tmp_path / "empty"
    folder.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-u", tmp_path / "program.py"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    shown = b""
    while b"ann 30" not in shown:  # the listener's line; the prompt has no line feed
        chunk = os.read(running.stdout.fileno(), 1 << 16)
        assert chunk, running.communicate()
        shown += chunk
    rest, errors = running.communicate(b"\n")
    assert (running.returncode, errors) == (0, b"")
    assert sorted((shown + rest).split(b"\n")) == [b"", b"Enter ends it", b"b'ann 30'"]


def test_every_command_is_named_in_its_document():
    from rmqctl.cli.tree import TREE, CommandRef

    text = " ".join((ROOT / "docs" / "commands.md").read_text("utf-8").split())
    for name, entry in TREE.items():
        if isinstance(entry, CommandRef):
            assert f"`{name}" in text or f" {name} " in text, name
        else:
            assert f"`{name} {next(iter(entry.verbs))}`" in text, name
            for verb in list(entry.verbs)[1:]:
                assert f"`{verb}`" in text, f"{name} {verb}"
