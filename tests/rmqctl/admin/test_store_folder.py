"""Whether a file lies in a store: also below folders that may be passed, but not listed."""

import subprocess
import sys

import pytest

from tests.support.privileges import without_privileges

CHECKS = """
import sys
from pathlib import Path
from rmqctl.console.program.files import check_file
from rmqctl.errors import Refused
try:
    check_file(Path(sys.argv[1]), [], None)
except Refused as error:
    sys.exit(str(error))
"""


@pytest.fixture
def home(tmp_path):
    """A folder that may not be listed, as /home of mode 0711, with a folder of a user."""
    folder = tmp_path / "home"
    (folder / "bob").mkdir(parents=True)
    folder.chmod(0o311)
    yield folder
    folder.chmod(0o755)


def checked(file):
    """Why the console does not write a file; empty if it does."""
    words = [*without_privileges(), sys.executable, "-c", CHECKS, str(file)]
    return subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False).stderr.strip()


@pytest.mark.slow
def test_a_folder_that_may_not_be_listed_is_no_store(home):
    (home / "config").mkdir(mode=0)
    assert checked(home / "bob" / "rows.json") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["commitlog", "consumequeue", "rmqctl/store.json", "config/topics.json"]
)
def test_a_store_that_may_not_be_listed_is_one(home, part):
    if part.endswith("json"):
        (home / part).parent.mkdir()
        (home / part).write_bytes(b"")
    else:
        (home / part).mkdir()
    file = home / "bob" / "rows.json"
    assert checked(file) == f"{file} is inside the store {home}; name a file outside of it"
