"""The compiled loops touch no memory that is not theirs: their tests, watched by the sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hatch_build import MODULES, compile_native

ROOT = Path(__file__).parents[2]
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def library(name: str) -> Path:
    """Where the compiler keeps a library that must be there before Python is."""
    if shutil.which("cc") is None:
        return Path(name)
    asked = ["cc", f"-print-file-name={name}"]
    return Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())


LIBRARIES = [library("libasan.so"), library("libubsan.so")]


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not all(path.is_absolute() for path in LIBRARIES), reason="needs cc on PATH")
def test_the_sanitizers_have_nothing_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tests that hold a compiled form against a pure one, in a copy with another module."""
    copy = tmp_path / "copy"
    without = shutil.ignore_patterns("*.so", "__pycache__")
    for folder in MODULES:
        shutil.copytree(ROOT / folder, copy / folder, ignore=without)
    inside = [path for folder in MODULES for path in (ROOT / folder).parent.iterdir()]
    for path in [*ROOT.iterdir(), *inside]:
        target = copy / path.relative_to(ROOT)
        if not target.exists():
            target.symlink_to(path)
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: " ".join(["cc", *SANITIZED] * (name == "CC"))
    )
    assert compile_native(copy) == ""
    comparing = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "needs_compiled" in path.read_text("utf-8") and path != Path(__file__)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"]
        + ["-o", "timeout=0", f"--basetemp={tmp_path / 'inside'}", *comparing],
        cwd=copy,
        env={
            **os.environ,
            "LD_PRELOAD": " ".join(map(str, LIBRARIES)),
            "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps some memory to its end
            "PYTHONMALLOC": "malloc",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    assert " passed" in done.stdout
