"""What the image of the Containerfile does, without containers: user, folders, variables.

The tour of the README runs in such a root, too.
"""

from pathlib import Path

import pytest

from tests.support.empty_root import EmptyRoot
from tests.test_readme import tour

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = """
rmqctl store init --quiet > /dev/null
printf 'hello\\nworld\\n' | rmqctl produce greetings --quiet > /dev/null
rmqctl consume greetings -e
rmqctl consume greetings -g readers -c 1 > /dev/null
rmqctl offset list -o tsv --columns lag --no-headers | sort
rmqctl store fsck -o json --columns ok --quiet
rmqctl doctor -o tsv --columns check,status --no-headers | grep -c -e error -e warning || true
touch /anywhere 2>/dev/null || echo "the user may write to the volume only"
id -u
"""
PRINTED = """\
hello
world
0
0
0
1
{
  "ok": true
}
0
the user may write to the volume only
10001
"""

pytestmark = pytest.mark.long


def instructions() -> dict[str, str]:
    """The last instruction of each kind, of the last stage."""
    text = (ROOT / "Containerfile").read_text("utf-8").rpartition("\nFROM ")[2]
    lines = text.replace("\\\n", " ").splitlines()[1:]
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if line.strip()}


def test_the_last_stage_is_not_root_and_its_volume_is_the_store() -> None:
    image = instructions()
    assert image["USER"] == "10001"
    assert image["VOLUME"] == image["WORKDIR"] == "/store"
    assert "RMQCTL_STORE=/store" in image["ENV"]
    assert image["ENTRYPOINT"] == '["rmqctl"]'


def test_the_main_job_in_a_root_that_has_nothing_else(tmp_path: Path) -> None:
    image = instructions()
    root = EmptyRoot(tmp_path, user=image["USER"], volume=image["VOLUME"])
    variables = dict(word.split("=", 1) for word in image["ENV"].split())
    done = root.run(COMMANDS, variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == PRINTED


def test_the_tour_of_the_readme_in_a_root_that_has_nothing_else(tmp_path: Path) -> None:
    root = EmptyRoot(tmp_path, user="10001", volume="/home/user")
    steps = tour()
    ends = '\nprintf "exit code %s\\036" $?\n'
    done = root.run("".join(command + ends for command, _ in steps), {"HOME": "/home/user"})
    assert (done.returncode, done.stderr) == (0, "")
    printed = dict(zip([command for command, _ in steps], done.stdout.split("\036"), strict=False))
    assert printed == {command: f"{shown}exit code 0" for command, shown in steps}
