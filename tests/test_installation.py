"""What a stranger does: install without a checkout and a network, run the main job, remove it.

All runs in a network namespace of its own that has no network, from a folder of wheels (`make
bundle`); only that folder is made with one.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from hatch_build import commit_of
from rmqctl import __version__
from rmqctl.help.version_command import built_from
from tests.support.compiled import needs_compiled

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "tests" / "checks" / "installed.py"
OFFLINE = ("unshare", "-rn")

pytestmark = pytest.mark.long


def _pythons() -> dict[str, str]:
    """Interpreters from 3.11 on: on PATH, and those that pyenv keeps; the first of each version."""
    names = [f"python3.{minor}" for minor in range(11, 20)]
    kept = Path.home() / ".pyenv" / "versions"
    found: dict[str, str] = {}
    for name in names:
        for path in (shutil.which(name), *sorted(kept.glob(f"*/bin/{name}"))):
            command = [str(path), "-c", "import venv, ensurepip"]
            if path and not subprocess.run(command, check=False, capture_output=True).returncode:
                found.setdefault(name, str(path))
    return found


PYTHONS = _pythons()


class Archives(NamedTuple):
    """What is installed."""

    sdist: Path
    wheel: Path
    commit: str | None


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare on PATH")
    dist = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return Archives(next(dist.glob("*.tar.gz")), next(dist.glob("*.whl")), commit_of(ROOT))


@pytest.fixture(scope="module", params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    return PYTHONS[request.param]


@pytest.fixture(scope="module")
def wheels(python: str, archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that ours need with this interpreter, and what builds and tests them; not ours."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [python, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run([*pip, str(archives.wheel), "pytest", "hatchling", "packaging"], check=True)
    for ours in folder.glob("rmqctl-*"):
        ours.unlink()
    return folder


class Place(NamedTuple):
    """An environment, a home and a temporary folder that hold nothing yet."""

    env: Path
    variables: dict[str, str]

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [*OFFLINE, *command],
            env=self.variables,
            cwd=cwd or self.env.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pip(self, *args: str | Path) -> str:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        return self.run(sys.executable, "-m", "pip", "--python", self.python, *quiet, *args)

    @property
    def python(self) -> Path:
        return self.env / "bin" / "python"

    def files(self) -> set[Path]:
        return {path for path in self.env.parent.rglob("*") if not path.is_dir()}


@pytest.fixture(params=["compiler", "no compiler"])
def compiler(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "compiler")


@pytest.fixture
def place(python: str, tmp_path: Path, compiler: bool) -> Place:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "unshare", "cat", "false"):  # --exec, the sample's pager: no compiler
        (programs / name).symlink_to(shutil.which(name) or name)
    work = tmp_path / "work"
    for folder in ("home", "tmp"):
        (work / folder).mkdir(parents=True)
    env = work / "env"
    subprocess.run([python, "-m", "venv", "--without-pip", env], check=True)
    path = f"{programs}:/usr/bin:/bin" if compiler else str(programs)
    variables = {"PATH": path, "HOME": str(work / "home"), "TMPDIR": str(work / "tmp")}
    return Place(env, variables)


@needs_compiled
@pytest.mark.parametrize("made", ["wheel", "sdist"])
def test_it_is_installed_used_tested_with_and_removed_and_nothing_is_left(
    archives: Archives, wheels: Path, place: Place, compiler: bool, made: str, tmp_path: Path
) -> None:
    before = place.files()
    chosen = archives.wheel if made == "wheel" else archives.sdist
    place.pip("install", "--no-index", "--find-links", wheels, chosen, "pytest")

    smoke = shutil.copy(SMOKE, tmp_path)
    kind = "--compiled" if made == "wheel" or compiler else "--pure"
    facts = json.loads(place.run(place.python, smoke, kind, cwd=tmp_path))
    assert facts["rmqctl"] == __version__
    assert facts["commit"] == archives.commit
    assert built_from() is None  # the checkout itself has no such file

    sample = shutil.copytree(ROOT / "examples" / "tested", tmp_path / "tested")
    stores = str(tmp_path / "stores")
    quiet = ("-q", "-p", "no:cacheprovider", "--basetemp", stores)
    assert "4 passed" in place.run(place.python, "-m", "pytest", *quiet, cwd=sample)

    place.pip("uninstall", "--yes", "rmqctl")
    names = [line.partition("==")[0] for line in place.pip("freeze").split("\n") if line]
    assert "rmqctl" not in names
    place.pip("uninstall", "--yes", *names)
    # pytest keeps a compiled copy of each module of its plugins, which pip does not know.
    left = {path for path in place.files() - before if not path.match("*-pytest-*.pyc")}
    assert sorted(left) == []
