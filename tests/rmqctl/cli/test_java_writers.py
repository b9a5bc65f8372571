"""Nothing is written where a Java broker writes, with or without a visible lock."""

import os
import threading
import time

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.java_writers import refuse_beside_java
from storage.errors import StoreInUseError
from storage.format.message import Message
from tests.support.cli import run
from tests.support.hand_made import HandMade
from tests.support.java_lock import java_lock

LONG_AGO = time.time() - 3600


def rest(root):
    """Make it look as if no process had written for an hour."""
    for path in root.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def test_a_store_that_a_java_broker_holds_is_not_changed(store):
    with java_lock(store), pytest.raises(StoreInUseError):
        refuse_beside_java(store)


@pytest.mark.slow
def test_a_java_broker_that_comes_meanwhile_is_noticed(store):
    check = refuse_beside_java(store)
    check()
    with java_lock(store), pytest.raises(StoreInUseError):
        check()


def test_a_log_that_grows_under_a_hidden_lock_is_noticed(tmp_path):
    made = HandMade(clean=False)
    made.put("A", 0, b"first")
    root = made.write(tmp_path)
    rest(root)
    check = refuse_beside_java(root)
    check()
    made.put("A", 0, b"second")
    made.write(tmp_path)
    with pytest.raises(StoreInUseError, match="another program"):
        check()


def test_what_rmqctl_itself_writes_meanwhile_is_no_stranger(tmp_path):
    made = HandMade(clean=False)
    made.put("A", 0, b"first")
    root = made.write(tmp_path)
    rest(root)
    check = refuse_beside_java(root)
    with EmbeddedBroker.open(root, store_config=made.config) as broker:
        broker.send(Message("A", b"second"), 0)
    check()


def test_a_broker_that_writes_at_this_moment_is_waited_for(tmp_path):
    """Its lock is not to be seen; its next message comes within the second that is looked for."""
    made = HandMade(clean=False)
    made.put("A", 0, b"first")
    root = made.write(tmp_path)
    ended = threading.Event()

    def write_on():
        while not ended.wait(0.1):
            made.put("A", 0, b"more")
            made.write(tmp_path)

    broker = threading.Thread(target=write_on)
    broker.start()
    try:
        given = ("-S", root, "-g", "g", "--new-group", "-t", "A", "--to-earliest")
        result = run("offset", "reset", *given, "--yes")
        looked = run("offset", "reset", *given, "-n")
    finally:
        ended.set()
        broker.join()
    assert result.code == 5
    assert "in use by another program, which is writing to it" in result.err
    assert looked.code == 0, looked.err
    assert not (root / "rmqctl/offsets.log").exists()


def test_a_store_that_rests_is_not_watched(tmp_path, monkeypatch):
    made = HandMade(clean=False)
    made.put("A", 0, b"first")
    root = made.write(tmp_path)
    rest(root)
    monkeypatch.setattr(time, "sleep", pytest.fail)
    refuse_beside_java(root)()


def test_a_delivery_that_goes_on_is_noticed_without_any_message(tmp_path):
    made = HandMade(clean=False)
    made.put("A", 0, b"first")
    root = made.write(tmp_path)
    (root / "config").mkdir(exist_ok=True)
    (root / "config/delayOffset.json").write_text("{}")
    rest(root)
    check = refuse_beside_java(root)
    (root / "config/delayOffset.json").write_text('{"offsetTable":{}}')
    with pytest.raises(StoreInUseError, match="another program"):
        check()
