"""A store of an older rmqctl is read, written and repaired; that one reads ours, or says no.

``stores/make.sh`` made the stores. A writer was killed in each of them.
"""

import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.cli import ROOT, run

STORES = Path(__file__).parent / "stores"
VERSIONS = sorted(path.name.split("-")[1].removesuffix(".txt") for path in STORES.glob("*.txt"))
REFUSED = "offsets.json has version 2, this rmqctl knows up to version 1; use a newer rmqctl\n"


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def older(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store, which commands find by the variable."""
    with tarfile.open(STORES / f"store-{version}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="tar")
    monkeypatch.setenv("RMQCTL_STORE", str(tmp_path / "s"))
    return tmp_path / "s"


def printed(version: str) -> list[tuple[str, str]]:
    """Commands, and what the older one printed."""
    steps = (STORES / f"store-{version}.txt").read_text("utf-8").split("$ rmqctl ")[1:]
    return [(command, output) for command, _, output in (step.partition("\n") for step in steps)]


def bodies(*args: str) -> list[str]:
    return run("consume", "orders", "-e", "-o", "jsonl", "--columns", "body", *args).lines


def progress() -> dict[int, int]:
    found = run("offset", "list", "billing", "-t", "orders", "-o", "json").json()
    return {row["queue_id"]: row["committed_offset"] for row in found}


@pytest.mark.slow
def test_it_reads_as_it_did_and_reading_changes_nothing(older: Path, version: str) -> None:
    def state() -> dict[Path, tuple[int, int]]:
        found = {path: path.stat() for path in older.rglob("*")}
        return {path: (facts.st_mtime_ns, facts.st_size) for path, facts in found.items()}

    before = state()
    steps = printed(version)
    assert len(steps) > 8
    for command, output in steps:
        assert run(*shlex.split(command)).out == output, command
    assert state() == before


@pytest.mark.slow
def test_it_is_written_and_keeps_its_messages_progress_and_journal(older: Path) -> None:
    before, changes = bodies(), run("audit", "list", "-o", "json").json()
    assert run("produce", "orders", "--queue", "0", stdin=b"new\n").code == 0
    assert bodies() == [*before, '{"body":"new"}']
    assert progress() == {0: 5, 1: 5}
    assert run("consume", "orders", "-g", "billing", "-c", "4").code == 0
    assert sum(progress().values()) == 14
    assert (older / "rmqctl" / "offsets.log").is_file()  # the log of this version
    assert run("offset", "reset", "billing", "-t", "orders", "--to-earliest", "-y").code == 0
    after = run("audit", "list", "-o", "json").json()
    assert [row for row in after if row["change_id"] <= 7] == changes
    assert {row["change_id"] for row in after} == set(range(1, 9))
    assert run("offset", "undo", "8", "-y").code == 0
    assert sum(progress().values()) == 14
    assert run("dlq", "ack", "stuck", "--undo", "-y").code == 0
    assert run("dlq", "list", "-o", "json").json()[0]["unhandled"] == 1
    assert run("store", "fsck", "-o", "json").json()["ok"] is True


@pytest.mark.slow
def test_it_is_repaired(older: Path) -> None:
    before = bodies()
    shutil.rmtree(older / "consumequeue" / "orders" / "1")
    assert run("store", "fsck", "-o", "json").json()["ok"] is False
    assert run("store", "repair", "-y").code == 0
    assert run("store", "fsck", "-o", "json").json()["ok"] is True
    assert bodies() == before
    assert progress() == {0: 5, 1: 5}
    assert run("produce", "orders", "--queue", "1", stdin=b"new\n").code == 0
    assert bodies("--last", "1") == ['{"body":"new"}']


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of 0.1.0."""
    archive = subprocess.run(
        ["git", "archive", OLD_COMMIT, "rmqctl", "storage", "broker", "client", "analytics"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        pytest.skip("needs the history of git")
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="tar")
    return folder


OLD_COMMIT = "051a0a7b"
"""The tag v0.1.0, for clones without tags."""


@pytest.mark.slow
def test_version_0_1_0_reads_and_sends_messages_and_refuses_progress(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    monkeypatch.setenv("RMQCTL_STORE", str(store))
    assert run("store", "init", store, "--small").code == 0

    def old(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "rmqctl", "-S", str(store), *args],
            cwd=program,
            env={**os.environ, "PYTHONPATH": str(program), "RMQCTL_PURE": "1"},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    assert old("--version").stdout == "rmqctl 0.1.0\n"
    assert run("produce", "orders", stdin=b"one\n").code == 0
    sent = old("produce", "orders", stdin="two\n")
    assert (sent.returncode, sent.stderr) == (0, "")
    assert old("consume", "orders", "-e").stdout == "one\ntwo\n"

    assert run("consume", "orders", "-g", "billing", "-c", "1").code == 0  # progress of ours
    committed = progress()
    for command in (
        ("offset", "list"),
        ("consume", "orders", "-g", "billing", "-c", "1"),
        ("offset", "reset", "billing", "-t", "orders", "--to-latest", "-y"),
    ):
        refused = old(*command)
        assert refused.returncode == 1, command
        assert refused.stderr.endswith(REFUSED), refused.stderr
        assert refused.stderr.count("\n") == 1
    assert old("consume", "orders", "-e").stdout == "one\ntwo\n"
    sent = old("produce", "orders", stdin="three\n")
    assert sent.stdout.startswith("SEND_OK")
    assert (sent.returncode, sent.stderr[-len(REFUSED) :]) == (1, REFUSED)
    assert bodies() == ['{"body":"one"}', '{"body":"two"}', '{"body":"three"}']
    assert progress() == committed
    assert run("store", "fsck", "-o", "json").json()["ok"] is True

    for name in ("offsets.log", "offsets.json"):  # the way back
        (store / "rmqctl" / name).unlink()
    columns = ("-o", "tsv", "--no-headers", "--columns", "queue_id,committed_offset")
    listed = old("offset", "list", "billing", "-t", "orders", *columns)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines() == [f"{queue}\t{at}" for queue, at in committed.items()]
