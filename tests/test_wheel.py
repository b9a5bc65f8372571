"""What users install: the wheel, alone, in an environment that holds nothing else of ours."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hatch_build import MODULES, commit_of
from tests.support.compiled import needs_compiled

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("rmqctl", "storage", "broker", "client", "analytics")

pytestmark = pytest.mark.slow


def _built(folder: Path, **environment: str) -> Path:
    """The wheel, built from this clone."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    whole = {**os.environ, **environment}
    subprocess.run([*build, folder, ROOT], check=True, capture_output=True, env=whole)
    return next(folder.glob("rmqctl-*.whl"))


@pytest.fixture(scope="module")
def wheel(once):
    return once("wheel", lambda folder: _built(folder, RMQCTL_PURE="0"))


@pytest.mark.long
def test_the_wheel_holds_every_module_the_completions_and_the_manual(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", ".html", ".css", ".js"}
    }
    assert "analytics/html_report/frame.html" in ours
    assert ours <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]
    for script in ("completions/rmqctl", "site-functions/_rmqctl", "rmqctl.fish"):
        assert [name for name in names if name.endswith(script)], script
    for page in (ROOT / "docs" / "man").glob("*.1"):
        assert [name for name in names if name.endswith(f"share/man/man1/{page.name}")], page.name
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    assert ("rmqctl/build.json" in names) is (commit_of(ROOT) is not None)


@pytest.mark.long
@needs_compiled
def test_the_wheel_carries_the_compiled_forms_and_says_for_which_c_library(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {f"{folder}/_compiled.abi3.so" for folder in MODULES} <= {*names}
    _, _, python, abi, platform = wheel.stem.split("-")
    assert (python, abi) == ("cp311", "abi3")
    assert platform.startswith(("manylinux_", "musllinux_", "macosx_"))


def test_one_build_serves_all_versions_of_python():
    """Formats such as ``y#`` name another function in the headers of Python 3.13 than in those
    before: a wheel that was built there raises SystemError in 3.11, and its name allows that."""
    sources = [path for folder in MODULES for path in (ROOT / folder).rglob("*.[ch]")]
    assert len(sources) > 50
    found = [
        f"{path.name}: {text}"
        for path in sources
        for text in re.findall(r'"[A-Za-z#*()\[\]{}|$:]*[szyu]#[^"\n]*"', path.read_text())
    ]
    assert found == []


def test_without_them_it_is_a_wheel_for_every_platform_that_does_the_same(tmp_path):
    pure = _built(tmp_path / "dist", RMQCTL_PURE="1")
    assert pure.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(pure) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
        archive.extractall(tmp_path / "installed")
    rmqctl = [sys.executable, "-m", "rmqctl", "-S", tmp_path / "store"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}

    def said(*args: str, stdin: str = "") -> str:
        return subprocess.run(
            [*rmqctl, *args],
            cwd=tmp_path,
            input=stdin,
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout

    assert "compiled     pure Python only" in said("doctor")
    said("store", "init")
    assert said("produce", "t", stdin="one\n").startswith("SEND_OK\tt\t")
    assert said("consume", "t", "-e") == "one\n"


@pytest.mark.long
def test_installed_alone_it_sends_and_reads_beside_a_stray_client_file(wheel, tmp_path):
    """In an environment of its own, from a folder whose client.py would shadow our package."""
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    install = [sys.executable, "-m", "pip", "--python", environment / "bin/python", "install"]
    # Compiling all of NumPy would take longer than everything else here.
    quick = ["--quiet", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*install, *quick, wheel], check=True, capture_output=True)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "client.py").write_text("raise SystemExit('the wrong client')\n")

    def rmqctl(*args: str, stdin: str = "") -> str:
        done = subprocess.run(
            [environment / "bin/rmqctl", *args],
            cwd=folder,
            input=stdin,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert rmqctl("--help").startswith("Usage: rmqctl")
    rmqctl("store", "init")
    assert rmqctl("produce", "t", stdin="one\n").startswith("SEND_OK\tt\t")
    lines = "".join(f"line {number}\n" for number in range(500))
    rmqctl("produce", "t", stdin=lines)
    assert rmqctl("consume", "t", "-e") == "one\n" + lines
    assert "UNIT_MISSING (finding of store fsck)" in rmqctl("explain", "UNIT_MISSING")
    assert "(field)" in rmqctl("explain", "committed_offset")
    assert rmqctl("man", "topic", "queues").startswith("NAME")
    assert "ok       locks" in rmqctl("doctor")
    subprocess.run([*install, *quick, "pytest"], check=True, capture_output=True)
    sample = shutil.copytree(ROOT / "examples" / "tested", tmp_path / "tested")
    tested = subprocess.run(
        [environment / "bin/python", "-m", "pytest", "-q"],
        cwd=sample,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        check=False,
    )
    assert tested.returncode == 0, tested.stdout
    assert "4 passed" in tested.stdout
    assert (environment / "share/man/man1/rmqctl.1").is_file()
    shadowed = subprocess.run(
        [environment / "bin/python", "-m", "rmqctl", "version"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    assert shadowed.returncode == 78
    assert "client.py" in shadowed.stderr
