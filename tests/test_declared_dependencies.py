"""The check of `make check` finds unused dependencies."""

from pathlib import Path

import pytest

from tests.checks import declared_dependencies as checks


def project(
    folder: Path, *, run_time="", dev="", bench="", ahead="", ours="", tests="", makefile=""
):
    """A small project; gives what the check finds in it."""
    for name in (*checks.PACKAGES, "tests"):
        (folder / name).mkdir()
    (folder / "rmqctl/a.py").write_text(ours)
    (folder / "tests/test_a.py").write_text(tests)
    (folder / "Makefile").write_text(makefile)
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["hatchling"]\n[project]\nname = "x"\n'
        f"dependencies = [{run_time}]\n[project.optional-dependencies]\ndev = [{dev}]\n"
        f"bench = [{bench}]\n"
        f"[tool.rmqctl.declared-ahead]\n{ahead}\n[tool.pytest.ini_options]\ntimeout = 3\n"
    )
    return list(checks.findings(folder))


@pytest.mark.parametrize(
    "arrangement",
    [
        {"run_time": "'numpy>=1'", "ours": "def f():\n    import numpy.linalg\n"},
        {"run_time": "'pyyaml'", "ours": "from yaml import safe_load\n"},
        {"run_time": "'isal'", "ours": "import importlib\nimportlib.import_module('isal.zlib')\n"},
        {"run_time": "'isal'", "ahead": "isal = 'soon'"},
        {"dev": "'pytest'", "tests": "import pytest\n"},
        {"dev": "'ruff'", "makefile": "check:\n\t$(BIN)/ruff check\n"},
        {"dev": "'import-linter'", "makefile": "check:\n\t$(BIN)/lint-imports\n"},
        {"dev": "'pytest-timeout'"},
        {
            "dev": "'pytest-xdist'",
            "makefile": "test:\n\t$(BIN)/python -m pytest -n 2 --dist load\n",
        },
        {"dev": "'hatchling'"},
        {"bench": "'persist-queue'", "tests": "import persistqueue\n"},
        {"run_time": "'pyyaml'", "dev": "'types-PyYAML'", "ours": "import yaml\n"},
    ],
)
def test_what_is_used_or_on_the_list_passes(tmp_path, arrangement):
    assert project(tmp_path, **arrangement) == []


@pytest.mark.parametrize(
    ("arrangement", "finding"),
    [
        ({"run_time": "'isal'"}, "isal is declared but none of our packages imports it"),
        ({"bench": "'litequeue'"}, "litequeue is declared but no benchmark imports it"),
        ({"run_time": "'isal'", "tests": "import isal\n"}, "none of our packages imports it"),
        ({"run_time": "'isal'", "ours": "from . import isal\n"}, "none of our packages"),
        ({"dev": "'ruff'"}, "ruff is declared but no test"),
        ({"dev": "'pytest-xdist'"}, "pytest-xdist is declared but no test"),
        (
            {"run_time": "'isal'", "ahead": "isal = 'soon'", "ours": "import isal\n"},
            "isal has come into use: take it off the declared-ahead list",
        ),
        ({"ahead": "isal = 'soon'"}, "isal is on the declared-ahead list but not declared"),
    ],
)
def test_what_is_not_used_is_found_and_so_is_a_list_that_is_out_of_date(
    tmp_path, arrangement, finding
):
    found = project(tmp_path, **arrangement)
    assert len(found) == 1
    assert finding in found[0]
