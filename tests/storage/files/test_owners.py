"""Owner and writers of a store's files, and refusals before anything is written."""

import errno
import fcntl
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from storage.errors import StoreNotWritableError
from storage.files import ownership
from storage.files.access import refuse_unwritable, refuse_unwritable_folders, unwritable
from storage.files.creating import (
    adopt,
    create,
    create_beside,
    is_temporary,
    make_folders,
    open_or_create,
    open_to_write,
    put_whole,
    remove_left,
    replacing,
)
from storage.files.ownership import Owner, owner_of, refuse_to_shut_out, shut_out
from storage.store import MessageStore
from tests.support.examples import one_in
from tests.support.samples import TINY, Sample, open_store, prepared
from tests.support.users import CAP_CHOWN, OWNER, User, as_user, needs_root, shared_folder

STORE = Owner(OWNER.uid, OWNER.gid, 0o755)
FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR


@pytest.fixture
def folder():
    with shared_folder() as made:
        yield made


@pytest.fixture
def root(folder):
    """A store of OWNER of several log files."""
    root = folder / "store"
    root.mkdir()
    os.chown(root, OWNER.uid, OWNER.gid)
    as_user(OWNER, fill, root)
    assert len(list((root / "commitlog").iterdir())) > 2
    return root


def fill(root):
    MessageStore.create(root, TINY)
    with open_store(root) as store:
        for number in range(30):
            store.put(prepared([Sample(f"m-{number}", "T", size=500, keys=("k",))]))
    (root / "abort").touch()


def info(uid, gid, mode):
    return SimpleNamespace(st_uid=uid, st_gid=gid, st_mode=mode)


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "shuts_out"),
    [
        (OWNER.uid, 0, FILE | 0o200, False),
        (OWNER.uid, 0, FILE | 0o477, True),
        (OWNER.uid, 0, FOLDER | 0o300, False),
        (OWNER.uid, 0, FOLDER | 0o677, True),
        (OWNER.uid, 0, FOLDER | 0o577, True),
        (0, OWNER.gid, FILE | 0o020, False),
        (0, OWNER.gid, FILE | 0o747, True),
        (0, OWNER.gid, FOLDER | 0o030, False),
        (0, OWNER.gid, FOLDER | 0o727, True),
        (0, 0, FILE | 0o002, False),
        (0, 0, FILE | 0o774, True),
        (0, 0, FOLDER | 0o003, False),
        (0, 0, FOLDER | 0o772, True),
    ],
)
def test_who_is_shut_out_by_a_mode(uid, gid, mode, shuts_out):
    assert shut_out(STORE, info(uid, gid, mode)) is shuts_out
    assert not shut_out(Owner(0, 0, 0o755), info(uid, gid, mode)), "root may write all"


@pytest.mark.parametrize(
    ("mode", "of_file", "of_folder"),
    [
        (0o755, 0o644, 0o755),
        (0o500, 0o600, 0o700),
        (0o2775, 0o664, 0o2775),
        (0o7777, 0o666, 0o2777),
        (0o070, 0o660, 0o770),
    ],
)
def test_modes_of_files_and_folders_follow_the_stores(mode, of_file, of_folder):
    owner = Owner(1, 1, mode)
    assert (owner.file_mode, owner.folder_mode) == (of_file, of_folder)


def test_what_a_file_follows(tmp_path):
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    root.chmod(0o751)
    deep = root / "a" / "b" / "c" / "d" / "e" / "f"
    for place in (root, root / "commitlog", deep):
        assert owner_of(place) == ownership.owner(root.stat())
    assert owner_of(deep / "g") is None, "so deep lies no file of a store"
    assert owner_of(tmp_path) is None
    (root / "commitlog").rmdir()
    root.rmdir()
    assert owner_of(root) is None
    assert owner_of(root / "commitlog") is None


# -- asked before it is written ---------------------------------------------------------------

EVERY_WRITER_NEEDS = [
    "", "commitlog", "consumequeue", "index", "config", "rmqctl", "lock", "abort", "checkpoint",
    "rmqctl/shared", "rmqctl/queues", "commitlog/last", "index/last",
]  # fmt: skip


def refusal(root):
    try:
        refuse_unwritable(root)
    except StoreNotWritableError as error:
        return str(error)
    return ""


@needs_root
@pytest.mark.parametrize("name", one_in(3, EVERY_WRITER_NEEDS))
@pytest.mark.slow
def test_each_place_that_a_writer_needs_is_asked_for(root, name):
    assert as_user(OWNER, refusal, root) == ""
    path = root / name
    if path.name == "last":
        *before, path = sorted(path.parent.iterdir())
        for other in before:
            os.chown(other, 0, 0)
        assert as_user(OWNER, refusal, root) == "", "of the older ones none is written"
    for mode in (0o644, 0o555, 0o766) if path.is_dir() else (0o644, 0o555):
        os.chown(path, 0, 0)
        path.chmod(mode)
        said = as_user(OWNER, refusal, root)
        assert "no permission" in said, oct(mode)
        assert str(path) in said
    os.chown(path, OWNER.uid, OWNER.gid)
    path.chmod(0o755)
    assert as_user(OWNER, refusal, root) == ""


@needs_root
def test_what_is_not_there_is_no_reason_and_a_link_is_one(root):
    for name in ("abort", "checkpoint", "index"):
        path = root / name
        path.rename(root.parent / name)
    assert as_user(OWNER, refusal, root) == ""
    (root / "abort").symlink_to(root.parent / "abort")
    told = "abort is a symbolic link; nothing is written through a link"
    assert told in as_user(OWNER, refusal, root)


@needs_root
def test_a_file_system_that_is_mounted_read_only_is_told_as_one(root, monkeypatch):
    os.chown(root / "lock", 0, 0)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert "the file system is mounted read-only" in as_user(OWNER, refusal, root)


@needs_root
@pytest.mark.slow
def test_a_folder_that_can_not_be_made_is_asked_for_by_the_one_above(root):
    as_user(OWNER, refuse_unwritable_folders, root / "consumequeue" / "New" / "0", root / "none")
    os.chown(root / "consumequeue", 0, 0)
    with pytest.raises(AssertionError, match="StoreNotWritableError"):
        as_user(OWNER, refuse_unwritable_folders, root, root / "consumequeue" / "New" / "0")
    as_user(OWNER, refuse_unwritable_folders, root / "consumequeue" / "T" / "1")


# -- found afterwards -------------------------------------------------------------------------


def found(root):
    return {
        (str(one.path.relative_to(root)), one.by_owner, one.what(ownership.owner(root.stat())))
        for one in unwritable(root)
    }


@needs_root
def test_what_the_owner_or_this_user_can_not_write_is_named(root):
    assert found(root) == set()
    queue = root / "consumequeue" / "T" / "0"
    (file,) = sorted(queue.iterdir())[-1:]
    os.chown(file, 0, 0)
    file.chmod(0o644)
    os.chown(queue, 0, 0)
    queue.chmod(0o766)
    link = root / "config" / "link"
    link.symlink_to("/")
    os.chown(link, 0, 0, follow_symlinks=False)
    by_owner = f"cannot be written by the store's owner (user id {OWNER.uid})"
    name = f"consumequeue/T/0/{file.name}"
    assert found(root) == {
        ("consumequeue/T/0", True, f"the folder of user id 0, mode 0766, {by_owner}"),
        (name, True, f"the file of user id 0, mode 0644, {by_owner}"),
    }


@needs_root
@pytest.mark.slow
def test_what_only_this_user_can_not_write_counts_where_the_store_is_open_to_it(root):
    stranger = User(1009, 9009)
    assert as_user(stranger, found, root) == set(), "the store's folder is not open"
    root.chmod(0o777)
    said = as_user(stranger, found, root)
    assert {name for name, by_owner, _ in said if not by_owner} >= {"lock", "commitlog", "config"}
    assert all("cannot be written by this user (user id 1009)" in what for *_, what in said)
    (root / "config").chmod(0o700)
    assert "config" in {name for name, *_ in as_user(stranger, found, root)}
    (root / "config").chmod(0o777)
    assert "config" not in {name for name, *_ in as_user(stranger, found, root)}
    (root / "config").chmod(0o776)
    assert "config" in {name for name, *_ in as_user(stranger, found, root)}, (
        "nothing is made there"
    )
    (root / "link").symlink_to("/")
    assert "link" not in {name for name, *_ in as_user(stranger, found, root)}


# -- made ---------------------------------------------------------------------------------------


def test_a_new_file_takes_the_place_of_nothing(tmp_path):
    path, victim = tmp_path / "file", tmp_path / "victim"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        create(path)
    assert path.read_bytes() == b"mine"
    (tmp_path / "link").symlink_to(victim)
    with pytest.raises(OSError, match="link"):
        create(tmp_path / "link")
    with pytest.raises(OSError, match="nothing is written through one"):
        open_to_write(tmp_path / "link")
    assert not victim.exists()


def test_a_file_that_is_being_made_is_locked_and_has_a_name_that_is_known_as_such(tmp_path):
    fd, made = create_beside(tmp_path / "file")
    assert is_temporary(made.name)
    other = os.open(made, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    remove_left(tmp_path)
    assert made.exists()
    os.close(fd)
    remove_left(tmp_path, "another")
    assert made.exists(), "it is not one of that file"
    remove_left(tmp_path, "file")
    assert not made.exists()
    os.close(other)


@pytest.mark.parametrize(
    "name",
    [
        ".x.tmp",
        "x.0123456789abcdef.tmp",
        ".x.0123456789ABCDEF.tmp",
        ".x.0123456789abcde.tmp",
        ".x.0123456789abcdef.tmp.x",
        ".x.0123456789abcdef",
    ],
)
def test_files_of_other_names_are_not_removed(name, tmp_path):
    assert not is_temporary(name)
    (tmp_path / name).touch()
    remove_left(tmp_path)
    assert (tmp_path / name).exists()


def test_a_file_is_made_once_and_nothing_is_left_beside_it(tmp_path):
    fds = []
    threads = [
        threading.Thread(target=lambda: fds.append(open_or_create(tmp_path / "file")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({os.fstat(fd).st_ino for fd in fds}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for fd in fds:
        os.close(fd)


def test_what_could_not_be_put_in_its_place_leaves_nothing(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(OSError, match="place"):
        put_whole(place, b"x")
    with pytest.raises(OSError, match="place"), replacing(place) as file:
        file.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    put_whole(tmp_path / "file", b"abc" * 100_000)
    assert (tmp_path / "file").read_bytes() == b"abc" * 100_000


def test_a_pipe_in_a_files_place_is_no_file_before(tmp_path):
    path = tmp_path / "file"
    os.mkfifo(path, 0o600)
    put_whole(path, b"x")
    assert path.read_bytes() == b"x"
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    now = os.umask(0o022)
    os.umask(now)
    return now


def replaced(path):
    put_whole(path, b"new")


def made(path):
    os.close(create(path))


@needs_root
def test_a_replaced_file_keeps_owner_group_and_mode_if_the_owner_can_write_it(root):
    path = root / "config" / "x.json"
    for uid, gid, mode in ((OWNER.uid, 77, 0o640), (55, OWNER.gid, 0o664), (OWNER.uid, 0, 0o600)):
        path.write_bytes(b"old")
        os.chown(path, uid, gid)
        path.chmod(mode)
        replaced(path)
        status = path.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (uid, gid, mode)
    os.chown(path, 0, 0)
    path.chmod(0o600)
    replaced(path)
    status = path.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (OWNER.uid, 0o644), "it shut the owner out"


@needs_root
@pytest.mark.parametrize("folder_mode", [0o755, 0o2775])
@pytest.mark.slow
def test_who_may_not_give_files_away_leaves_nothing_that_shuts_the_owner_out(root, folder_mode):
    root.chmod(folder_mode)
    path = root / "config" / "x.json"
    container = User(0, without=(CAP_CHOWN,))
    if folder_mode == 0o755:
        for call, place in ((made, path), (make_folders, path), (refuse_to_shut_out, root)):
            with pytest.raises(AssertionError, match="OwnerLockedOutError"):
                as_user(container, call, place)
        assert not path.exists()
        assert not [p for p in root.iterdir() if is_temporary(p.name)]
    else:
        as_user(container, refuse_to_shut_out, root)
        as_user(container, made, root / "x.json")
        status = (root / "x.json").stat()
        assert (status.st_uid, status.st_gid) == (0, OWNER.gid)
        assert status.st_mode & 0o777 == 0o664


@needs_root
def test_another_group_gets_no_more_than_all_others_get(folder):
    for mode, others, expected in ((0o2775, 0o775, 0o775), (0o2770, 0o770, 0o700)):
        made_here = folder / f"{mode:o}"
        made_here.mkdir()
        fd = os.open(made_here, os.O_RDONLY)
        wanted = Owner(os.geteuid(), 12345, mode)
        as_user(User(0, without=(CAP_CHOWN,)), give_by_name, made_here, wanted, others)
        os.close(fd)
        found_mode = made_here.stat().st_mode & 0o777
        assert found_mode == (expected & ~0o070 | (expected & 0o007) << 3)


def give_by_name(path, wanted, mode):
    fd = os.open(path, os.O_RDONLY)
    ownership.give(fd, wanted, mode, str(path), str(path))
    os.close(fd)


@needs_root
def test_a_socket_of_a_store_is_the_owners(root):
    path = root / "rmqctl" / "bell"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        path.chmod(0o600)
        adopt(path)
    status = path.stat()
    assert (status.st_uid, status.st_gid) == (OWNER.uid, OWNER.gid)
    assert status.st_mode & 0o777 == 0o644


@needs_root
@pytest.mark.parametrize(("mode", "given"), [(0o755, True), (0o1777, False)])
def test_a_folder_of_settings_is_the_users_but_in_a_folder_of_all(folder, mode, given):
    home = folder / "home"
    home.mkdir()
    os.chown(home, OWNER.uid, OWNER.gid)
    home.chmod(mode)
    make_folders(home / "a", follow_folder=True)
    make_folders(home / "b")
    assert (home / "a").stat().st_uid == (OWNER.uid if given else 0)
    assert (home / "b").stat().st_uid == 0


@needs_root
def test_folders_of_a_store_are_the_owners(root):
    root.chmod(0o2775)
    make_folders(root / "consumequeue" / "N" / "0")
    for path in (root / "consumequeue" / "N", root / "consumequeue" / "N" / "0"):
        status = path.stat()
        assert (status.st_uid, status.st_gid) == (OWNER.uid, OWNER.gid)
        assert status.st_mode & 0o7777 == 0o2775
    make_folders(Path(root / "consumequeue" / "N"))
    (root / "file").touch()
    with pytest.raises(FileExistsError):
        make_folders(root / "file")


@pytest.mark.slow
def test_files_that_others_make_and_delete_meanwhile_are_no_refusal(tmp_path):
    """Closing writers delete ``abort`` and opening writers make it."""
    root = tmp_path / "store"
    MessageStore.create(root, TINY)
    code = "import os, sys\nwhile True: open(sys.argv[1], 'w').close(); os.unlink(sys.argv[1])"
    others = subprocess.Popen([sys.executable, "-c", code, str(root / "abort")])
    try:
        for _ in range(20_000):
            refuse_unwritable(root)
        for _ in range(500):
            assert list(unwritable(root)) == []
        assert others.poll() is None
    finally:
        others.kill()
        others.wait()


@needs_root
def test_a_folder_that_cannot_be_given_to_the_owner_is_not_left(root, monkeypatch):
    """It would shut the owner out, and the next call would take it for finished."""
    path, open_ = root / "consumequeue" / "N", os.open

    def refuses(name, *arguments, **settings):
        if name == path:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(name))
        return open_(name, *arguments, **settings)

    monkeypatch.setattr(os, "open", refuses)
    with pytest.raises(OSError, match="Too many open files"):
        make_folders(path)
    assert not path.exists()
    monkeypatch.undo()
    make_folders(path)
    assert path.stat().st_uid == OWNER.uid


@pytest.mark.parametrize("name", ["index", "commitlog"])
def test_a_link_whose_disk_is_not_mounted_is_named(root, name):
    (root / name).rename(root.parent / f"away-{name}")
    (root / name).symlink_to(root.parent / "not mounted")
    with pytest.raises(StoreNotWritableError, match=f"{name} is a symbolic link to .*not mounted"):
        refuse_unwritable(root)
