"""Something else than a file lies in the place of a settings file or of ``offsets.json``.

The commands that put these files together again move it to the quarantine: it has no bytes to
copy, and a file cannot replace a folder.
"""

import os
import socket

import pytest

from storage.store import MessageStore
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.rich_store import SIZES

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.DamagedFileWarning")

OFFSETS = "rmqctl/offsets.log"
JAVA = "config/consumerOffset.json"
BAK = "config/consumerOffset.json.bak"
TOPICS = "config/topics.json"
GROUPS = "config/subscriptionGroup.json"


def folder(path):
    path.mkdir()


def folder_with_a_file(path):
    path.mkdir()
    (path / "inside").write_bytes(b"kept")


def pipe(path):
    os.mkfifo(path)


def circular_link(path):
    path.symlink_to(path.name)


def dangling_link(path):
    path.symlink_to("nowhere")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))  # the length of its address is bounded


KINDS = (
    pytest.param(folder, marks=pytest.mark.long),
    folder_with_a_file,
    pipe,
    circular_link,
    dangling_link,
    pytest.param(bound_socket, marks=pytest.mark.long),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with a message that group g has read, and a topic and a group with settings."""
    root = tmp_path_factory.mktemp("made") / "s"
    MessageStore.create(root, SIZES)
    for line in (
        "topic create t",
        "group create g",
        "group create h",
        "produce t -c 4 --template %i",
        "consume t -g g -e -q",
        "offset reset -g g -t t --shift-by -1 --execute --yes",
    ):
        assert run(*line.split(), "-S", root, "--no-input").code == 0, line
    return root


@pytest.fixture
def root(made, tmp_path, monkeypatch):
    root = tmp_path / "s"
    copy_store(made, root)
    MessageStore.open(root).close()
    monkeypatch.chdir(root)
    return root


def replaced(root, name, kind):
    path = root / name
    path.unlink(missing_ok=True)
    kind(path)
    status = path.lstat()
    return status.st_mode, status.st_ino


def kept(root, name):
    """What lies in the quarantine under the name."""
    runs = (root / "rmqctl/quarantine").iterdir()
    found = [run / name for run in runs if os.path.lexists(run / name)]
    return [(path.lstat().st_mode, path.lstat().st_ino) for path in found]


def committed(root):
    rows = run("offset", "list", "-g", "g", "-S", root, "-o", "json").json()
    return {row["queue_id"]: row["committed_offset"] for row in rows if row["topic"] == "t"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [OFFSETS, JAVA, BAK])
@pytest.mark.parametrize("options", [(), ("--overwrite",)])
def test_progress_is_recovered(root, name, kind, options):
    before = committed(root)
    thing = replaced(root, name, kind)
    result = run("store", "recover-offsets", *options, "--execute", "--yes", "-S", root)
    assert result.code == 0, result.err
    assert committed(root) == before
    if name != BAK and (name, kind) != (OFFSETS, dangling_link):
        assert (root / name).is_file()
        assert not (root / name).is_symlink()
        assert kept(root, name) == [thing]
        assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [TOPICS, GROUPS])
@pytest.mark.parametrize("bak", [False, True])
def test_settings_are_recovered(root, name, kind, bak):
    thing = replaced(root, name, kind)
    if bak:
        replaced(root, f"{name}.bak", kind)
    result = run("store", "recover-config", "--execute", "--yes", "-S", root)
    assert result.code == 0, result.err
    assert kept(root, name) == [thing]
    assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0
    assert run("consume", "t", "-e", "-q", "-S", root).code == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [OFFSETS, TOPICS, GROUPS])
def test_repair_puts_a_file_there(root, name, kind):
    if (name, kind) == (OFFSETS, dangling_link):
        return  # it reads as a missing file, which is no damage: Java's file has the progress
    replaced(root, name, kind)
    result = run("store", "repair", "--execute", "--yes", "-S", root)
    assert result.code == 0, result.err
    assert (root / name).is_file()
    assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_dump_of_a_checkpoint_that_is_no_file_says_so(root, kind):
    replaced(root, "checkpoint", kind)
    result = run("store", "dump", "checkpoint", "-S", root)
    assert result.code in (3, 4), result
    assert "checkpoint" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_names_of_queues_that_are_no_file_are_made_again(root, kind):
    replaced(root, "rmqctl/queues", kind)
    assert run("consume", "t", "-e", "-q", "-S", root).code == 0
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert run("produce", "t", "-S", root, stdin=b"x\n").code == 0
    assert (root / "rmqctl/queues").is_file()
    assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_entry_that_is_no_file_is_no_process(root, kind):
    (root / "rmqctl/members").mkdir(exist_ok=True)
    replaced(root, "rmqctl/members/1-0123456789ab.life", kind)
    for line in ("consume t -e -g g -q", "group list", "offset reset -g g -t t --to-latest --yes"):
        result = run(*line.split(), "-S", root, "--no-input")
        assert result.code == 0, (line, result)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_redrives_that_is_no_file_is_named_or_passed(root, kind):
    (root / "rmqctl/redrives").mkdir(exist_ok=True)
    assert run("produce", "%DLQ%g", "-Q", 0, "-S", root, stdin=b"x\n").code == 0
    name = "rmqctl/redrives/R20261126T141750-0e02d3ea.jsonl"
    replaced(root, name, kind)
    result = run("dlq", "redrive", "g", "--all", "--yes", "-S", root)
    assert result.code in (1, 4), result  # 1: the message names no topic to be sent to
    assert result.code == 1 or name in result.err
