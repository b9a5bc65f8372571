"""``EmbeddedBroker.open(path, create=True)``: a store where there is none."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_missing_store
from storage.config import SMALL_STORE, FlushDiskType, StoreConfig
from storage.errors import StoreNotFoundError, StoreNotWritableError
from storage.format.message import Message
from storage.layout import was_created_here
from storage.store import MessageStore
from tests.support.cli import ROOT, run
from tests.support.crash import Child, die
from tests.support.watched_fs import WatchedFileSystem


def files(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("folder", ["missing", "a/b/c", "empty"])
def test_a_store_is_made_where_there_is_none(tmp_path, folder):
    root = tmp_path / folder
    if folder == "empty":
        root.mkdir()
    with EmbeddedBroker.open(root, create=True) as broker:
        result = broker.send(Message("Orders", b"first"))
    with EmbeddedBroker.open(str(root), create=True) as broker:
        found = broker.view_message(int(result.offset_msg_id[16:], 16))
        assert found is not None
        assert found.body == b"first"
    assert was_created_here(root)


def test_the_store_is_the_one_that_store_init_makes(tmp_path):
    run("store", "init", tmp_path / "a", "-q")
    assert create_missing_store(tmp_path / "b")
    made, asked = files(tmp_path / "a"), files(tmp_path / "b")
    for table in (made, asked):  # the table's version holds the time
        assert b'"TBW102"' in table.pop("config/topics.json")
    assert made == asked


def test_given_settings_are_recorded_for_the_next_opener(tmp_path):
    config = BrokerConfig(broker_name="broker-b")
    sizes = SMALL_STORE.with_(flush_disk_type=FlushDiskType.SYNC_FLUSH)
    EmbeddedBroker.open(tmp_path / "s", config, store_config=sizes, create=True).close()
    with EmbeddedBroker.open(tmp_path / "s", create=True) as broker:
        assert broker.name == "broker-b"
        assert broker.view.config == sizes


def test_a_folder_without_a_store_is_refused_by_default(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreNotFoundError, match="store init"):
            EmbeddedBroker.open(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["notes.txt", "lock", "rmqctl/own", ".git/x"])
def test_a_folder_with_other_content_is_refused_and_left_alone(tmp_path, name):
    path = tmp_path / "folder" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    (path.parent / "another").mkdir()
    before = files(tmp_path)
    with pytest.raises(
        StoreNotWritableError, match="it holds files and is no RocketMQ store; name"
    ):
        EmbeddedBroker.open(tmp_path / "folder", create=True)
    assert files(tmp_path) == before


def test_a_store_of_another_program_is_opened_and_is_not_made_ours(tmp_path):
    path = tmp_path / "store" / "commitlog" / "readme"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    EmbeddedBroker.open(tmp_path / "store", create=True).close()
    assert not was_created_here(tmp_path / "store")
    assert path.read_text() == "mine"


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreNotWritableError, match="file cannot be written: it is a file"):
        EmbeddedBroker.open(tmp_path / "file", create=True)


def test_what_cannot_be_made_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(StoreNotWritableError, match="/proc/none"):
        EmbeddedBroker.open("/proc/none/below", create=True)
    with pytest.raises(ValueError, match="give one of them"):
        EmbeddedBroker.open(tmp_path / "s", create=True, read_only=True)
    with pytest.raises(ValueError, match="nowhere"):
        EmbeddedBroker.open(tmp_path / "s", BrokerConfig(store_host="nowhere"), create=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None,), "the store is None; it is the path of a folder"),
        ((5,), r"the store is 5 \(int\); it is the path of a folder"),
        ((b"s",), r"the store is b's' \(bytes\); it is the path of a folder"),
        (("s", {"name": 1}), r"config is \{'name': 1\} \(dict\); it is a BrokerConfig"),
        (("s", StoreConfig()), r"config is StoreConfig\(.*; it is a BrokerConfig"),
    ],
)
def test_arguments_of_other_types_are_named(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    for create in (False, True):
        with pytest.raises(TypeError, match=said):
            EmbeddedBroker.open(*arguments, create=create)
    with pytest.raises(TypeError, match=r"store_config is 3 \(int\); it is a StoreConfig"):
        EmbeddedBroker.open("s", store_config=3, create=True)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import sys
from rmqctl import EmbeddedBroker, Message, SMALL_STORE
sys.stdin.read(1)  # all begin at once
with EmbeddedBroker.open(sys.argv[1], store_config=SMALL_STORE, create=True) as broker:
    broker.send(Message(f"Topic-{sys.argv[2]}", b"x"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [1, pytest.param(3, marks=pytest.mark.long)])
def test_of_processes_that_make_the_store_at_once_none_loses_a_topic(tmp_path, attempts):
    for attempt in range(attempts):
        root = tmp_path / f"s{attempt}"
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(root), str(n)],
                stdin=subprocess.PIPE,
                cwd=ROOT,
            )
            for n in range(5)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"g")
            process.stdin.flush()
        for process in processes:
            process.communicate()
            assert process.returncode == 0
        with EmbeddedBroker.open(root, read_only=True) as broker:
            for n in range(5):
                topic = broker.topic(f"Topic-{n}")
                assert topic is not None
                assert topic.write_queue_nums == 4, "its settings are in topics.json"
                assert sum(broker.max_offset(f"Topic-{n}", q) for q in range(4)) == 1


@pytest.mark.crash
@pytest.mark.slow
def test_what_a_killed_process_has_left_is_made_anew(tmp_path):
    config = BrokerConfig(broker_name="broker-b")
    for number in count(1):
        root = tmp_path / f"s{number}"

        def make(_, number=number, root=root):
            fs = WatchedFileSystem(lambda at: die() if at.number == number else None)
            create_missing_store(root, SMALL_STORE, config, fs=fs)

        was_killed, _ = Child(make).wait()
        with EmbeddedBroker.open(root, config, store_config=SMALL_STORE, create=True) as broker:
            broker.send(Message("Orders", b"x"))
        assert was_created_here(root), number
        with MessageStore.open(root) as store:
            assert store.view.queues(), number
            sizes = store.config.mapped_file_size_commit_log
            assert sizes == SMALL_STORE.mapped_file_size_commit_log, number
        if not was_killed:
            break
    assert number > 10
