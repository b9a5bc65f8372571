"""``store snapshot`` and ``store restore`` as commands: what they do, show, and refuse."""

from __future__ import annotations

import os
import subprocess
import tarfile

import pytest

from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.format.names import SNAPSHOT_MANIFEST
from storage.store import MessageStore
from storage.tools.snapshot.restore import ASIDE
from tests.support import golden
from tests.support.cli import run
from tests.support.crash import fast_folder, inspect
from tests.support.java_lock import java_lock
from tests.support.rich_store import SIZES

MESSAGES = 900
QUICK = ("basic-4.9", "torn-clean-queue-missing-4.9")
FORMS = ["snap", "snap.tar", "snap.tar.gz", "snap.tgz"]


@pytest.fixture
def place():
    """A folder with nothing but what the test puts there."""
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def store(place):
    root = place / "store"
    MessageStore.create(root, SIZES)
    sent = run("produce", "t", "-S", root, "--template", "%i " + "x" * 300, "-c", MESSAGES)
    assert sent.code == 0, sent.err
    return root


def files_of(root):
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file()
    }


def snapshot(store, target, *options):
    result = run("store", "snapshot", "-S", store, "--save", target, "-o", "json", *options)
    assert result.code == 0, result.err
    return result.json()


def restored(source, target, *options):
    return run("store", "restore", source, "-S", target, "--execute", "--yes", *options)


@pytest.mark.slow
@pytest.mark.feature(119)
@pytest.mark.parametrize("form", FORMS)
def test_a_restored_store_is_the_one_that_was_copied(store, place, form):
    before = files_of(store)
    row = snapshot(store, place / form)
    assert files_of(store) == before, "the store has changed"
    assert (row["messages"], row["whole"]) == (MESSAGES, True)
    assert run("store", "snapshot", "--verify", place / form).code == 0
    result = restored(place / form, place / "new")
    assert (result.code, result.err) == (0, f"store {place / 'new'} (option --store)\n")
    found = inspect(place / "new", SIZES)
    assert found.problems == []
    assert found.records == inspect(store, SIZES).records
    assert run("store", "diff", store, place / "new", "--deep", "-o", "json").json() == []
    assert sorted(path.name for path in place.iterdir()) == ["new", form, "store"]


def test_an_archive_unpacks_to_a_snapshot(store, place):
    snapshot(store, place / "monday.tar.gz")
    subprocess.run(["tar", "xf", "monday.tar.gz"], cwd=place, check=True)
    assert run("store", "snapshot", "--verify", place / "monday").code == 0
    with tarfile.open(place / "monday.tar.gz") as archive:
        assert archive.getnames()[0] == f"monday/{SNAPSHOT_MANIFEST}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["\u00fc.tar.gz", f"{48 * 'x'}.tar", "short.tar"])
def test_an_archive_has_files_with_holes_whatever_their_names_are(store, place, name):
    topic = "a-topic-" * 9
    assert run("produce", topic, "-S", store, stdin=b"x\n").code == 0
    snapshot(store, place / name)
    assert run("store", "snapshot", "--verify", place / name).code == 0
    assert restored(place / name, place / "new").code == 0
    assert run("store", "diff", store, place / "new", "--deep", "-o", "json").json() == []
    subprocess.run(["tar", "xf", name], cwd=place, check=True)
    unpacked = place / name.removesuffix(".gz").removesuffix(".tar")
    assert run("store", "snapshot", "--verify", unpacked).code == 0


def test_full_files_are_shared_unless_copies_are_wanted(store, place):
    row = snapshot(store, place / "links")
    assert row["shared_files"] >= 1
    first = f"commitlog/{0:020d}"
    info = (place / "links" / first).stat()
    if info.st_nlink > 1:  # where there are no clones
        assert info.st_ino == (store / first).stat().st_ino
    last = sorted((store / "commitlog").iterdir())[-1]
    assert (place / "links/commitlog" / last.name).stat().st_nlink == 1
    row = snapshot(store, place / "copies", "--copy")
    assert row["shared_files"] == 0
    files = [path for path in (place / "copies").rglob("*") if path.is_file()]
    assert all(path.stat().st_nlink == 1 for path in files)


@pytest.mark.parametrize("form", ["snap", "snap.tar"])
def test_a_restored_store_shares_nothing_with_its_snapshot(store, place, form):
    snapshot(store, place / form)
    assert restored(place / form, place / "new").code == 0
    assert all(path.stat().st_nlink == 1 for path in (place / "new").rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.long)
        for name in golden.names()
    ],
)
def test_golden_stores_are_copied_and_come_back(name, place):
    row = snapshot(golden.store(name), place / "snap")
    result = restored(place / "snap", place / "new")
    assert result.code == 0, result.err
    if row["whole"]:
        differences = run(
            "store", "diff", golden.store(name), place / "new", "--deep", "-o", "json"
        )
        assert [row for row in differences.json() if row["part"] != "queue"] == []


# -- damage


def damage(path, how):
    if how == "missing":
        path.unlink()
    elif how == "cut":
        os.truncate(path, path.stat().st_size - 20)
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.unlink()  # it may be a file of the store, too
        path.write_bytes(data)


@pytest.mark.parametrize("how", ["flipped", "cut", "missing"])
@pytest.mark.parametrize("part", ["commitlog", "consumequeue", "index", "config", "manifest.json"])
def test_a_damaged_snapshot_is_refused_and_nothing_changes(store, place, part, how):
    snap, target = place / "snap", place / "new"
    snapshot(store, snap)
    place = snap / part
    victim = place if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())[0]
    damage(victim, how)
    if (part, how) == ("manifest.json", "missing"):
        assert run("store", "snapshot", "--verify", snap).code == 3
        assert restored(snap, target).code == 3
        return
    verified = run("store", "snapshot", "--verify", snap)
    assert verified.code == 4
    assert victim.name in verified.err
    for options in (["--dry-run"], ["--execute", "--yes"]):
        result = run("store", "restore", snap, "-S", target, *options)
        assert result.code == 4, result.err
        assert victim.name in result.err
        assert not target.exists()


@pytest.mark.slow
def test_an_archive_that_was_cut_is_refused(store, place):
    for form in FORMS[1:]:
        path = place / form
        snapshot(store, path)
        os.truncate(path, path.stat().st_size // 2)
        assert run("store", "snapshot", "--verify", path).code == 4
        assert restored(path, place / "new").code == 4
        assert not (place / "new").exists()


# -- refusals


@pytest.mark.slow
def test_nothing_is_replaced_without_its_name(store, place):
    snapshot(store, place / "snap")
    run("produce", "t", "-S", store, stdin=b"later\n")
    before = files_of(store)
    refused = restored(place / "snap", store)
    assert (refused.code, files_of(store) == before) == (7, True)
    assert restored(place / "snap", store, "--confirm", "other").code == 7
    result = restored(place / "snap", store, "--confirm", "store")
    assert result.code == 0, result.err
    assert inspect(store, SIZES).problems == []
    (aside,) = [path for path in place.iterdir() if ASIDE in path.name]
    assert files_of(aside) == before
    (entry,) = run("audit", "list", "-S", store, "-o", "json").json()
    assert (entry["command"], entry["old"]) == ("store restore", {"moved_aside": str(aside)})


def test_without_consent_it_only_shows(store, place):
    snapshot(store, place / "snap")
    for options in ([], ["--dry-run"], ["--yes", "--dry-run"]):
        result = run(
            "store", "restore", place / "snap", "-S", place / "new", "-o", "json", *options
        )
        assert result.code == (0 if options else 7)
        assert {row["part"] for row in result.json()} >= {"commitlog", "config", "rmqctl"}
        assert not (place / "new").exists()


@pytest.mark.slow
def test_a_dry_run_refuses_what_the_snapshot_refuses_and_writes_nothing(store, place):
    (place / "taken").mkdir()
    (place / "taken" / "file").touch()
    (place / "no-store").mkdir()
    before = set(place.rglob("*"))
    for root, target, code in (
        (store, place / "taken", 7),
        (store, store / "inside", 7),
        (store, place / "no" / "x", 5),
        (place / "no", place / "x", 3),
        (place / "no-store", place / "x", 3),
        (store, place / "x", 0),
    ):
        words = ("store", "snapshot", "-S", root, "--save", target)
        dry = run(*words, "-n")
        assert (dry.code, dry.out) == (code, ""), target
        assert set(place.rglob("*")) == before
        if code:
            done = run(*words)
            assert (done.code, done.err) == (dry.code, dry.err)


@pytest.mark.slow
def test_a_snapshot_replaces_nothing(store, place):
    (place / "empty").mkdir()
    snapshot(store, place / "empty")
    for target in (place / "empty", store, store / "inside"):
        assert run("store", "snapshot", "-S", store, "--save", target).code == 7
    assert run("store", "snapshot", "-S", store, "--save", place / "no" / "x").code == 5
    assert run("store", "snapshot", "-S", place / "no", "--save", place / "x").code == 3
    assert run("store", "snapshot", "-S", store).code == 2


@pytest.mark.slow
def test_a_snapshot_is_read_like_a_store_and_never_written(store, place):
    snapshot(store, place / "snap")
    before = files_of(place / "snap")
    assert run("store", "info", "-S", place / "snap", "-o", "json").json()["messages"] == MESSAGES
    assert run("consume", "t", "-S", place / "snap", "-e").code == 0
    for line in (
        "produce t",
        "topic create x",
        "consume t -g g -e",
        "offset reset -g g -t t --to-latest --execute --yes",
    ):
        result = run(*line.split(), "-S", place / "snap", stdin=b"a\n")
        assert result.code != 0, line
    assert files_of(place / "snap") == before


# -- beside others


def test_a_snapshot_takes_no_lock_and_works_beside_java(store, place):
    with java_lock(store):
        assert snapshot(store, place / "snap")["messages"] == MESSAGES


def test_progress_that_is_in_no_file_yet_is_in_the_snapshot(store, place):
    from storage.configs.pending_commits import PendingCommits

    ProgressFile(store).commit({("t@g", 0): QueueProgress(0, 3)})
    (store / "rmqctl/members").mkdir(exist_ok=True)
    notes = PendingCommits(store / "rmqctl/members/a.notes")
    notes.write(("t@g", 0), QueueProgress(0, 7))
    snapshot(store, place / "snap")
    notes.close()
    assert ProgressFile(place / "snap").read().offsets() == {"t@g": {0: 7}}
    assert ProgressFile(store).read().offsets() == {"t@g": {0: 3}}
    assert not (place / "snap/rmqctl/members").exists()


@pytest.mark.slow
def test_who_could_not_look_into_the_store_can_not_look_into_copies(store, place):
    store.chmod(0o700)
    snapshot(store, place / "snap")
    snapshot(store, place / "snap.tar")
    assert restored(place / "snap", place / "a").code == 0
    assert restored(place / "snap.tar", place / "b").code == 0
    modes = {name: (place / name).stat().st_mode & 0o777 for name in ("snap", "snap.tar", "a", "b")}
    assert modes == {"snap": 0o700, "snap.tar": 0o600, "a": 0o700, "b": 0o700}


def test_a_restore_tells_of_files_whose_time_is_over(store, place):
    for path in (store / "commitlog").iterdir():
        os.utime(path, (0, 0))
    snapshot(store, place / "snap")
    result = restored(place / "snap", place / "new")
    assert result.code == 0
    assert "log files are older than 72 h" in result.err
    assert sorted(path.name for path in (place / "new/commitlog").iterdir()) == sorted(
        path.name for path in (store / "commitlog").iterdir()
    )
