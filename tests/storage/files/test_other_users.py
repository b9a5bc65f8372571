"""Several users of one store: no file of one user locks another one out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import StoreError, StoreNotWritableError
from storage.results import PutMessageStatus
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.examples import one_in
from tests.support.samples import TINY, Sample, open_store, prepared
from tests.support.users import (
    CAP_CHOWN,
    FRIEND,
    OWNER,
    ROOT,
    User,
    as_user,
    needs_root,
    shared_folder,
    tree,
)

pytestmark = needs_root


@pytest.fixture
def folder() -> Iterator[Path]:
    with shared_folder() as made:
        yield made


def new(folder: Path, mode: int) -> Path:
    root = folder / "store"
    root.mkdir()
    os.chown(root, OWNER.uid, OWNER.gid)
    root.chmod(mode)
    as_user(OWNER, MessageStore.create, root, TINY)
    return root


def put(root: Path, topic: str, queue: int = 0, size: int = 10) -> str:
    """What became of one message: a status, or the kind of the error."""
    try:
        with open_store(root) as store:
            status = store.put(prepared([Sample("k", topic, queue, size=size)])).status
            return str(status.name)
    except StoreError as error:
        return f"{type(error).__name__}: {error}"


def puts(root: Path, topics: list[str], size: int) -> list[str]:
    """What became of one message for each topic; the store is opened for each anew."""
    return [put(root, topic, size=size) for topic in topics]


def strangers(root: Path) -> list[str]:
    """What the owner could not write."""
    return [
        path
        for path, (uid, gid, mode, _) in tree(root).items()
        if uid != OWNER.uid and not (gid == OWNER.gid and int(mode, 8) & 0o020)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("umask", one_in(3, [0o077, 0o022, 0o000]))
def test_what_root_makes_is_the_owners(folder: Path, umask: int) -> None:
    root = new(folder, 0o755)
    topics = [f"T{number % 3}" for number in range(30)]  # more than one file of each kind
    done = as_user(User(0, umask=umask), puts, root, topics, size=900)
    assert done == ["PUT_OK"] * len(topics)
    found = tree(root)
    assert {(uid, gid) for uid, gid, _, _ in found.values()} == {(OWNER.uid, OWNER.gid)}
    modes = {mode for _, _, mode, _ in found.values()}
    assert modes == {"40755", "100644"}
    assert as_user(OWNER, put, root, "T0") == "PUT_OK"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "files"),
    [
        (0o2770, "100660"),
        pytest.param(0o2775, "100664", marks=pytest.mark.long),
        pytest.param(0o775, "100664", marks=pytest.mark.long),
    ],
)
def test_three_users_take_turns(folder: Path, mode: int, files: str) -> None:
    root = new(folder, mode)
    thread_mutex = [ROOT, OWNER, FRIEND, OWNER, FRIEND, ROOT, FRIEND, OWNER]
    for number, user in enumerate(thread_mutex):
        user_with_umask = user._replace(umask=(0o022, 0o077, 0o002)[number % 3])
        topics = [topic for topic in ("T", f"T{number}") for _ in range(4)]
        done = as_user(user_with_umask, puts, root, topics, size=900)
        assert done == ["PUT_OK"] * len(topics), (number, user, done)
    assert strangers(root) == []
    kinds = {m for _, _, m, _ in tree(root).values() if m.startswith("100")}
    assert kinds == {files}
    with MessageStore.open(root) as store:
        assert store.view.max_offset_in_queue("T", 0) == 4 * len(thread_mutex)


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_who_may_not_write_is_refused_and_leaves_nothing(folder: Path, mode: int) -> None:
    root = new(folder, mode)
    assert as_user(OWNER, put, root, "T") == "PUT_OK"
    before = tree(root)
    assert "no permission" in as_user(FRIEND, put, root, "T")
    assert "no permission" in as_user(FRIEND, put, root, "U")
    assert tree(root) == before


@pytest.mark.slow
def test_root_that_may_not_give_files_away_is_refused(folder: Path) -> None:
    root = new(folder, 0o755)
    assert as_user(OWNER, put, root, "T") == "PUT_OK"
    before = tree(root)
    container = User(0, without=(CAP_CHOWN,))
    for topic in ("T", "U"):
        said = as_user(container, put, root, topic)
        assert said.startswith("StoreNotWritableError"), said
        assert "user id 1001" in said
    assert tree(root) == before
    assert as_user(OWNER, put, root, "T") == "PUT_OK"


def test_root_that_may_not_give_files_away_shares_them_with_the_group(folder: Path) -> None:
    root = new(folder, 0o2775)
    container = User(0, without=(CAP_CHOWN,))
    assert as_user(container, put, root, "T") == "PUT_OK"
    assert strangers(root) == []
    assert as_user(OWNER, put, root, "T") == "PUT_OK"


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o755, 0o2775, 0o777])
def test_root_of_a_container_that_does_not_know_the_owner(folder: Path, mode: int) -> None:
    root = new(folder, mode)
    assert as_user(OWNER, put, root, "T") == "PUT_OK"
    before = tree(root)
    tried = subprocess.run(["unshare", "-Ur", "true"], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip("needs Linux with user namespaces")
    code = (
        "from tests.storage.files.test_other_users import put\nfrom pathlib import Path\n"
        f"print(put(Path({str(root)!r}), 'U'))"
    )
    command = ["unshare", "-Ur", sys.executable, "-c", code]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if mode == 0o777:
        assert said == "PUT_OK\n"
        assert as_user(OWNER, put, root, "U") == "PUT_OK"
    else:
        assert said.startswith("StoreNotWritableError"), said
        assert tree(root) == before
        assert as_user(OWNER, put, root, "T") == "PUT_OK"


@pytest.mark.parametrize("what", ["consumequeue/T/0", "consumequeue/T/0/file", "consumequeue/T"])
@pytest.mark.slow
def test_a_queue_of_another_user_is_refused_before_the_log_is_written(
    folder: Path, what: str
) -> None:
    """What an older rmqctl of root has left."""
    root = new(folder, 0o755)
    for topic, queue in (("T", 0), ("U", 0)):
        assert as_user(OWNER, put, root, topic, queue) == "PUT_OK"
    queue_file = next((root / "consumequeue/T/0").iterdir())
    path = queue_file if what.endswith("file") else root / what
    os.chown(path, 0, 0)
    path.chmod(0o644 if path.is_file() else 0o755)
    topic, number = ("T", 1) if what == "consumequeue/T" else ("T", 0)
    if what == "consumequeue/T/0":
        queue_file.unlink()  # the next one is to be made there
        with MessageStore.open(root):
            pass
        queue_file.unlink(missing_ok=True)

    def log() -> tuple[int, bytes]:
        file = next((root / "commitlog").iterdir())
        with MessageStore.open(root) as store:
            return store.log_end, file.read_bytes()

    before = log()
    for _ in range(2):
        said = as_user(OWNER, put, root, topic, number)
        assert said.startswith("StoreNotWritableError"), said
        assert str(path.relative_to(root)) in said
    assert log() == before
    assert as_user(OWNER, put, root, "U") == "PUT_OK", "other topics go on"


def test_one_opening_goes_on_after_a_refused_put(folder: Path) -> None:
    root = new(folder, 0o755)
    assert as_user(OWNER, put, root, "T", 0) == "PUT_OK"
    os.chown(root / "consumequeue/T", 0, 0)

    def puts() -> list[str]:
        said = []
        with open_store(root) as store:
            for topic, queue in (("T", 1), ("T", 0), ("U", 0), ("T", 1), ("U", 0)):
                try:
                    result = store.put(prepared([Sample("k", topic, queue)]))
                    assert result.status is PutMessageStatus.PUT_OK
                    said.append("ok")
                except StoreNotWritableError:
                    said.append("refused")
        return said

    assert as_user(OWNER, puts) == ["refused", "ok", "ok", "refused", "ok"]


def calls_of(root: Path, number: int) -> list[list[str]]:
    words = [
        f"topic create t{number} --yes",
        "produce t0",
        "consume t0 -g readers -e",
        "offset reset -g readers -t t0 --to-earliest --execute --yes",
        f"consume t0 -g g{number} -e",
        f"broker config set fileReservedTime {50 + number} --yes",
        "store fsck",
    ]
    return [[*line.split(), "-S", str(root)] for line in words]


@pytest.mark.slow
def test_commands_of_three_users(folder: Path) -> None:
    """Settings, progress, receipts, members: nothing of them keeps the next user out."""
    root = new(folder, 0o2775)
    home = {"HOME": str(folder)}
    MessageStore.create(folder / "other", TINY)
    for call in calls_of(folder / "other", 0):  # loads what a child may not find
        assert run(*call, env=home, stdin=b"hello\n").code == 0
    for number, user in enumerate([ROOT, FRIEND, OWNER, FRIEND, ROOT, OWNER]):
        for call in calls_of(root, number):
            shell = user._replace(umask=0o077)
            done = as_user(shell, run, *call, env=home, stdin=b"hello\n")
            assert done.code == 0, (number, user, call, done)
            assert "FILE_NOT_WRITABLE" not in done.out
    assert strangers(root) == []


@pytest.mark.slow
def test_fsck_and_doctor_name_what_the_owner_can_not_write(folder: Path) -> None:
    root = new(folder, 0o755)
    assert as_user(OWNER, put, root, "T") == "PUT_OK"
    assert "FILE_NOT_WRITABLE" not in run("store", "fsck", "-S", root).out
    assert "permissions" in run("doctor", "-S", root).out  # and all modules are loaded
    os.chown(root / "consumequeue/T/0", 0, 0)
    (root / "rmqctl/shared").chmod(0o444)
    for user in (ROOT, OWNER):
        fsck = as_user(user, run, "store", "fsck", "-S", root, "-o", "json")
        named = {f["file"] for f in fsck.json()["findings"] if f["code"] == "FILE_NOT_WRITABLE"}
        assert named == {"consumequeue/T/0", "rmqctl/shared"}
        doctor = as_user(user, run, "doctor", "-S", root, env={"HOME": str(folder)})
        assert f"{root}/consumequeue/T/0: " in doctor.out, doctor
        assert f"{root}/rmqctl/shared: " in doctor.out
    plan = run("store", "repair", "-S", root, "-o", "json")
    assert "FILE_NOT_WRITABLE" not in plan.out, "it is nothing that repair mends"


@pytest.mark.slow
def test_a_restored_store_stays_its_owners(folder: Path) -> None:
    root = new(folder, 0o750)
    assert as_user(OWNER, put, root, "T") == "PUT_OK"
    snapshot = folder / "monday.tar"
    assert run("store", "snapshot", "--save", snapshot, "-S", root).code == 0
    done = run("store", "restore", snapshot, "-S", root, "--execute", "--confirm", "store", "--yes")
    assert done.code == 0, done
    assert strangers(root) == []
    assert {mode for _, _, mode, _ in tree(root).values()} == {"40750", "100640"}
    assert as_user(OWNER, put, root, "T") == "PUT_OK"
