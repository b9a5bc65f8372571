"""Names and texts with bytes that are no UTF-8: kept where a broker has written them, else refused
or made printable; never an internal error, and nothing half written."""

from __future__ import annotations

import socket

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.configs.consumer_offsets import CONSUMER_OFFSET_FILE
from storage.configs.journal import Journal
from storage.format.message import Message
from storage.format.names import CONFIG
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.dead_letters import give_back

FF = "\udcff"
"""The byte FF as Python has it in arguments and names of files."""


@pytest.fixture
def of_java(store):
    """A store with a message, whose progress is in a Java broker's file alone."""
    assert run("produce", "T", "-Q", 0, stdin=b"hello\n").code == 0
    path = store / CONFIG / CONSUMER_OFFSET_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b'{"offsetTable":{"T@old\xff":{0:1}}}')
    return path


@pytest.mark.slow
def test_other_groups_commit_beside_a_group_of_another_charset(of_java, store):
    assert not (store / "rmqctl" / "offsets.log").exists()
    done = run("consume", "T", "-g", "other", "-c", 1)
    assert (done.code, done.err.count("internal")) == (0, 0), done.err
    assert b'"T@old\xff":{0:1\n' in of_java.read_bytes()
    assert b'"T@other":{0:1' in of_java.read_bytes()
    assert run("offset", "reset", "-g", "other", "-t", "T", "--to-earliest", "--yes").code == 0
    assert b'"T@old\xff":{0:1\n' in of_java.read_bytes()
    for words in (["lag", "show", "other"], ["group", "list"], ["store", "fsck"]):
        done = run(*words)
        assert (done.code, done.err.count("internal")) == (0, 0), done.err


@pytest.mark.parametrize("variable", ["LOGNAME", "USER"])
def test_the_journal_has_a_printable_user(store, variable):
    env = {"LOGNAME": "", "USER": "", "LNAME": "", "USERNAME": "", variable: f"me{FF}"}
    done = run("topic", "create", "x", "--yes", env=env)
    assert done.code == 0, done.err
    [entry] = Journal(store).entries()
    assert entry["user"] == r"me\xff"


def test_the_journal_has_a_printable_host(store, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: f"host{FF}")
    assert run("topic", "create", "x", "--yes").code == 0
    [entry] = Journal(store).entries()
    assert entry["host"] == r"host\xff"


@pytest.mark.slow
def test_a_setting_that_is_no_utf8_is_refused(store):
    done = run("broker", "config", "set", "brokerName", FF, "--yes")
    assert done.code == 2
    assert r"'\udcff' has bytes that are no UTF-8" in done.err
    assert list(Journal(store).entries()) == []


@pytest.fixture
def dead(store):
    with EmbeddedBroker.open(store) as broker:
        sent = broker.send(Message("t", b"x"), 0)
        (message,) = broker.query_unique("t", sent.msg_id)
        give_back(broker, "g", message)
        broker.update_consumer_offsets("g", [OffsetCommit("t", 0, 1)])


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize("option", [("--set-property", f"a={FF}"), ("--pipe", f"cat {FF}")])
def test_a_redrive_with_a_text_that_is_no_utf8_writes_nothing(store, option):
    done = run("dlq", "redrive", "g", "--all", *option, "--execute", "--yes")
    assert done.code == 2
    assert "has bytes that are no UTF-8" in done.err
    assert list(Journal(store).entries()) == []
    assert not list((store / "rmqctl").glob("redrives/*.jsonl"))


@pytest.mark.parametrize("name", [f"n{FF}", f"config/n{FF}", f"rmqctl/n{FF}", f"x/n{FF}"])
def test_a_snapshot_names_a_file_that_it_leaves_out(store, tmp_path, name):
    path = store / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"{}")
    done = run("store", "snapshot", "--save", tmp_path / "snap")
    assert done.code == 0, done.err
    assert r"n\xff is left out: its name is no UTF-8" in done.err
    done = run("store", "snapshot", "--verify", tmp_path / "snap")
    assert done.code == 0, done.err
    assert not (tmp_path / "snap" / name).exists()


def test_a_store_of_such_a_path_has_snapshots(tmp_path):
    other = tmp_path / f"s{FF}"
    MessageStore.create(other, SMALL_STORE)
    for target in ("snap", f"snap{FF}.tar"):
        done = run("store", "snapshot", "-S", other, "--save", tmp_path / target)
        assert done.code == 0, done.err
        done = run("store", "restore", tmp_path / target, "-S", tmp_path / f"new{target}", "--yes")
        assert done.code == 0, done.err
