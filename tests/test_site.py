"""`make docs`: the site of the documents builds without a warning or a link to nothing."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site() -> Path:
    if find_spec("mkdocs") is None or find_spec("mkdocstrings") is None:
        pytest.skip("needs the docs extra: pip install -e '.[docs]'")
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_site.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return Path(done.stdout.strip()).parent


def test_it_has_each_command_each_public_name_and_each_document(site: Path) -> None:
    import rmqctl
    from rmqctl.help.manual import pages

    for page in pages():
        if page.name != "rmqctl":
            assert (site / "reference" / page.name / "index.html").is_file()
    python = "".join(path.read_text("utf-8") for path in (site / "python").rglob("*.html"))
    for name, module in rmqctl._WHERE.items():
        assert f'id="{module}.{name}"' in python, name
    for document in (ROOT / "docs").rglob("*.md"):
        parts = document.relative_to(ROOT).with_suffix("").parts
        folder = parts[:-1] if parts[-1] == "README" else parts
        assert (site.joinpath(*folder) / "index.html").is_file(), document


def test_nothing_of_it_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert '<script src="http' not in text
        assert "fonts.g" not in text
