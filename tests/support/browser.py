"""A headless browser: fetched once by npm, run by a few lines of JavaScript that answer JSON."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.java import cache_folder

PROBES = Path(__file__).resolve().parent
_PACKAGES = ("@sparticuz/chromium@143.0.4", "playwright-core@1.49.1")
_NAME = "browser-143.0.4-1.49.1"
_UNPACK = """
import chromium from "@sparticuz/chromium";
await chromium.executablePath();
"""
_NO_REGISTRY = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ECONNRESET")
_SECONDS = 120
"""How long fetching it may take; npm itself tries again and again."""


def probed(script: str, argument: Any) -> Any:
    """Run a probe, which is a file beside this one, and give what it answers."""
    folder = prepare()
    done = subprocess.run(
        ["node", str(PROBES / script), json.dumps(argument)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env={
            **os.environ,
            "NODE_PATH": str(folder / "node_modules"),
            "BROWSER": str(folder / "unpacked" / "chromium"),
            # Libraries that a browser needs and a slim system lacks.
            "LD_LIBRARY_PATH": str(folder / "unpacked" / "al2023" / "lib"),
        },
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def prepare() -> Path:
    """Fetch the browser unless that was done before. Skips the test where it is not available."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} on PATH")
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        pytest.skip("needs Linux on x86_64")
    folder = cache_folder() / _NAME
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{_NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "unpacked").mkdir(parents=True)
    (partial / "package.json").write_text("{}")
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--fetch-retries=1"]
    done = subprocess.run(
        ["npm", "install", *quiet, *_PACKAGES],
        cwd=partial,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode and any(sign in done.stderr for sign in _NO_REGISTRY):
        pytest.skip("needs a package registry (npm can not reach its own)")
    assert done.returncode == 0, done.stderr
    # It unpacks itself into the folder for temporary files, and its libraries where this is set.
    environment = {
        **os.environ,
        "TMPDIR": str(partial / "unpacked"),
        "AWS_LAMBDA_JS_RUNTIME": "nodejs20.x",
    }
    unpack = ["node", "--input-type=module", "-e", _UNPACK]
    subprocess.run(unpack, cwd=partial, env=environment, check=True, timeout=_SECONDS)
    partial.rename(folder)
