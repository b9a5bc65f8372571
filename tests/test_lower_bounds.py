"""Each dependency has one lower bound, which `make test-lowest` installs."""

from pathlib import Path

import pytest

from tests.support.lower_bounds import ROOT, lower_bounds

PROJECT = """[project]
dependencies = [{!r}]
[project.optional-dependencies]
spark = []
"""


def test_each_dependency_of_ours_has_one():
    found = list(lower_bounds(ROOT))
    assert "sortedcontainers==2.4" in found
    assert any(line.startswith("pyspark==") for line in found)


def test_a_marker_stays(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PROJECT.format("x>=1.5,<2; os_name == 'posix'"))
    assert list(lower_bounds(tmp_path)) == ['x==1.5; os_name == "posix"']


@pytest.mark.parametrize("text", ["x", "x<2", "x==1"])
def test_a_dependency_without_a_lower_bound_is_named(tmp_path: Path, text: str):
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(text))
    with pytest.raises(ValueError, match=f"{text}: not one lower bound"):
        list(lower_bounds(tmp_path))
