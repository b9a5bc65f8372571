"""The plugin of pytest, in projects of others: each test here runs pytest on a file of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.slim import ROOT

pytestmark = pytest.mark.slow
HEAD = """
import pytest
from rmqctl import ConsumeConcurrentlyStatus, Message

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
"""


def run_tests(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a user does who has installed nothing but rmqctl."""
    (folder / "test_theirs.py").write_text(HEAD + text)
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "rmqctl.testing.plugin", "-q"),
            *(f"--rootdir={folder}", f"--basetemp={folder / 'temp'}", "-p", "no:cacheprovider"),
            *words,
            folder / "test_theirs.py",
        ],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def passed(folder: Path, text: str) -> None:
    found = run_tests(folder, text)
    assert found.returncode == 0, found.stdout


def test_what_is_sent_is_consumed_and_seen(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
def test_an_order(rocketmq_store, rocketmq_producer, rocketmq_consumer):
    charged = []

    def charge(messages, context):
        charged.extend(message.body for message in messages)
        return SUCCESS

    rocketmq_consumer("billing", {"orders": "paid || new"}, charge)
    for tag in ("new", "paid", "gone"):
        rocketmq_producer.send(Message("orders", tag.encode(), tags=tag))
    rocketmq_store.wait_until_consumed("billing")
    assert sorted(charged) == [b"new", b"paid"]
    stored = rocketmq_store.messages("orders")
    assert [message.body for message in stored] == [b"new", b"paid", b"gone"]
    assert rocketmq_store.topics() == ["orders"]
    assert rocketmq_store.messages("other") == []


def test_the_next_test_has_an_empty_store(rocketmq_store):
    assert rocketmq_store.topics() == []
""",
    )
    assert list((tmp_path / "temp").iterdir()) == []


def test_the_clock_is_set_ahead_to_what_is_delayed_and_to_retries(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
def test_two_hours(rocketmq_store, rocketmq_producer, rocketmq_consumer):
    consumer = rocketmq_consumer("billing", "orders")
    rocketmq_producer.send(Message("orders", b"later", delay_time_level=18))
    assert rocketmq_store.messages("orders") == []
    rocketmq_store.advance_delay(7200)
    while not rocketmq_store.messages("orders"):
        pass
    rocketmq_store.wait_until_consumed("billing")


def test_what_is_due_is_waited_for(rocketmq_store, rocketmq_producer, rocketmq_consumer):
    seen = []
    rocketmq_consumer("billing", "orders", lambda them, _: seen.extend(them) or SUCCESS)
    for level in (16, 18):  # half an hour, two hours
        rocketmq_producer.send(Message("orders", b"%d" % level, delay_time_level=level))
    rocketmq_store.wait_until_consumed("billing")
    assert not seen
    rocketmq_store.advance_delay(1800)
    rocketmq_store.wait_until_consumed("billing")
    assert [message.body for message in seen] == [b"16"]


def test_a_retry(rocketmq_store, rocketmq_producer, rocketmq_consumer):
    tries = []

    def charge(messages, context):
        tries.extend(message.reconsume_times for message in messages)
        return LATER if len(tries) == 1 else SUCCESS

    rocketmq_consumer("billing", "orders", charge)
    rocketmq_producer.send(Message("orders", b"order 7"))
    while not rocketmq_store.retries("billing"):
        pass
    with pytest.raises(TimeoutError, match="retries of group billing|has read orders"):
        rocketmq_store.wait_until_consumed("billing", timeout=0.1)
    rocketmq_store.advance_delay(10)
    rocketmq_store.wait_until_consumed("billing")
    assert tries == [0, 1]


def test_a_clock_goes_ahead_only(rocketmq_store):
    with pytest.raises(ValueError, match="set ahead"):
        rocketmq_store.advance_delay(-1)
""",
    )


def test_a_retry_that_is_delivered_between_two_looks_is_waited_for(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
from threading import Event
from rmqctl.testing import store


def test_it(rocketmq_store, rocketmq_producer, rocketmq_consumer, monkeypatch):
    tries, money = [], Event()

    def charge(messages, context):
        tries.extend(messages)
        if len(tries) == 1:
            return LATER
        money.wait()
        return SUCCESS

    def after_its_delivery(view, group, waiting=store.waiting_retries):
        while not rocketmq_store.messages("%RETRY%billing"):
            pass
        return waiting(view, group)

    rocketmq_consumer("billing", "orders", charge)
    rocketmq_producer.send(Message("orders", b"order 7"))
    while not rocketmq_store.retries("billing"):
        pass
    rocketmq_store.advance_delay(10)
    monkeypatch.setattr(store, "waiting_retries", after_its_delivery)
    try:
        with pytest.raises(TimeoutError):
            rocketmq_store.wait_until_consumed("billing", timeout=0.5)
    finally:
        money.set()
    rocketmq_store.wait_until_consumed("billing")
    assert len(tries) == 2
""",
    )


def test_messages_that_failed_too_often_are_dead_letters_and_read(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
def test_it(rocketmq_store, rocketmq_producer, rocketmq_consumer):
    rocketmq_consumer("billing", "orders", lambda *_: LATER, max_reconsume_times=0)
    rocketmq_producer.send(Message("orders", b"poison"))
    while not rocketmq_store.messages("%DLQ%billing"):
        pass
    rocketmq_store.wait_until_consumed("billing")
    assert rocketmq_store.messages("%DLQ%billing")[0].body == b"poison"
""",
    )


def test_a_test_that_fails_shows_the_topics_and_keeps_the_store(tmp_path: Path) -> None:
    found = run_tests(
        tmp_path,
        """
def test_wrong(rocketmq_store, rocketmq_producer):
    for number in range(25):
        rocketmq_producer.send(Message("orders", b"%d\\x1b[2J" % number, keys="key-%d" % number))
    rocketmq_producer.send(Message("mail", b"x" * 200, tags="new"))
    assert len(rocketmq_store.messages("orders")) == 24


def test_empty(rocketmq_store):
    assert rocketmq_store.messages("orders")
""",
    )
    assert found.returncode == 1
    kept = [path for path in (tmp_path / "temp").iterdir() if not path.is_symlink()]
    assert len(kept) == 2
    for path in kept:
        assert f"topics of rocketmq_store: {path / 'store'}" in found.stdout
    assert "mail: 1 message\n  queue " in found.stdout
    assert "... (200 bytes)  tag new" in found.stdout
    assert "orders: 25 messages\n  the last 20:\n" in found.stdout
    assert "keys key-24" in found.stdout
    assert "keys key-4\n" not in found.stdout
    assert "\x1b" not in found.stdout
    assert "no topic holds a message" in found.stdout


def test_a_fixture_that_fails_keeps_the_store_too(tmp_path: Path) -> None:
    """Also a store that a test gets by its name, as the steps of pytest-bdd do."""
    found = run_tests(
        tmp_path,
        """
@pytest.fixture
def billed(rocketmq_store, rocketmq_producer):
    rocketmq_producer.send(Message("orders", b"of a fixture"))
    rocketmq_store.wait_until_consumed("billing", timeout=0)


def test_of_a_fixture(billed):
    pass


def test_by_name(request):
    request.getfixturevalue("rocketmq_producer").send(Message("orders", b"by name"))
    assert not request.getfixturevalue("rocketmq_store").topics()
""",
    )
    assert found.returncode == 1
    kept = [path for path in (tmp_path / "temp").iterdir() if not path.is_symlink()]
    assert len(kept) == 2
    for path, body in zip(sorted(kept), ("of a fixture", "by name"), strict=True):
        assert f"topics of rocketmq_store: {path / 'store'}" in found.stdout
        assert f"b'{body}'" in found.stdout


def test_broadcasting_consumers_of_each_test_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home := tmp_path / "of a user").mkdir()
    monkeypatch.setenv("HOME", str(home))
    text = """
import threading

from rmqctl import MessageModel


@pytest.mark.parametrize("count", [3, 1])
def test_cache(rocketmq_store, rocketmq_producer, rocketmq_consumer, count):
    seen, all_seen = [], threading.Event()

    def take(messages, context):
        seen.extend(message.body for message in messages)
        if len(seen) == count:
            all_seen.set()
        return SUCCESS

    queue = rocketmq_producer.send(Message("prices", b"0")).message_queue
    for number in range(1, count):
        rocketmq_producer.send(Message("prices", b"%d" % number), queue=queue)
    rocketmq_consumer("cache", "prices", take, message_model=MessageModel.BROADCASTING)
    assert all_seen.wait(10), seen
    with pytest.raises(ValueError, match="group cache is broadcasting"):
        rocketmq_store.wait_until_consumed("cache")
"""
    (tests := tmp_path / "tests").mkdir()
    for _ in range(2):
        passed(tests, text)
    assert list(home.iterdir()) == []


def test_orderly_listeners_and_those_without_one(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
def test_it(rocketmq_store, rocketmq_producer, rocketmq_consumer):
    rocketmq_consumer("in_order", "orders", orderly=True)
    rocketmq_consumer("any", "orders", consume_thread_min=1)
    rocketmq_producer.send(Message("orders", b"1"))
    rocketmq_store.wait_until_consumed("in_order")
    rocketmq_store.wait_until_consumed("any")


def test_a_group_that_is_not_there_is_waited_for(rocketmq_store):
    with pytest.raises(TimeoutError, match="after 0.1 s group none has no progress"):
        rocketmq_store.wait_until_consumed("none", timeout=0.1)
""",
    )


def test_the_command_line_and_other_processes_use_the_store(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
import subprocess, sys


def test_it(rocketmq_store):
    rmqctl = [sys.executable, "-m", "rmqctl", "-S", rocketmq_store]
    subprocess.run([*rmqctl, "produce", "orders"], input=b"a\\nb\\n", check=True)
    assert [message.body for message in rocketmq_store.messages("orders")] == [b"a", b"b"]
    subprocess.run([*rmqctl, "consume", "orders", "-g", "readers", "-c", "2"], check=True)
    rocketmq_store.wait_until_consumed("readers")
""",
    )


def test_pytest_alone_loads_nothing_of_rmqctl(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
import subprocess, sys


def test_it():
    code = (
        "import sys, rmqctl.testing.plugin;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'broker', 'storage', 'client', 'numpy', 'typer', 'rich'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() in ("", "rich")
""",
    )


def test_the_project_of_the_examples_passes_its_tests(tmp_path: Path) -> None:
    project = ROOT / "examples" / "tested"
    (tmp_path / "billing.py").write_text((project / "billing.py").read_text())
    found = run_tests(tmp_path, (project / "test_billing.py").read_text())
    assert found.returncode == 0, found.stdout
    assert "4 passed" in found.stdout
