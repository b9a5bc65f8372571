"""A member of a group prints many messages from columns: the same bytes, and the same progress."""

import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from rmqctl.consume.listener import PrintHandler
from storage import native
from storage.clock import now_ms
from storage.format.message import Message
from storage.read import get_message
from storage.read.message_rows import MessageRows
from storage.readonly import StoreView
from tests.support.cli import run, start
from tests.support.rich_store import TOPIC, make_rich_store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty"),
]
MEANWHILE = 30
FORMS = (
    ("-D", r"\0;"),
    ("-f", r"%t %q %o %k %g %T %s\n"),
    ("-o", "jsonl", "--columns", "queue_offset,keys,body"),
    ("-o", "csv", "--columns", "queue_offset,msg_id,body_base64,body"),
    ("-o", "yaml", "--columns", "queue_offset,tags,body"),
)
END = b"\0;"


@contextmanager
def running(*options, **streams):
    with start("consume", "t", *options, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def committed(store, topic="t", group="g"):
    with EmbeddedBroker.open(store, read_only=True) as broker:
        return broker.consumer_offsets().get((group, topic), {})


def fill(store, count, *, size=1, queues=1):
    """The numbers, with dots behind them, in the queues in turn."""
    run("topic", "create", "t", "--queues", queues)
    with EmbeddedBroker.open(store) as broker:
        bodies = [b"%d".ljust(size, b".") % number for number in range(count)]
        broker.send_column("t", bodies, [number % queues for number in range(count)])
    return bodies


def consume(*options, group="g"):
    return run("consume", "t", "-g", group, *options)


@pytest.fixture
def as_rows(monkeypatch):
    """How many messages each call printed as rows."""
    printed = []
    real = PrintHandler.__call__

    def call(self, messages):
        printed.append(len(messages) if isinstance(messages, MessageRows) else 0)
        real(self, messages)

    monkeypatch.setattr(PrintHandler, "__call__", call)
    return printed


def both_ways(monkeypatch, *words):
    """Consume by a group for each way; gives what they printed."""
    found = run(*words, "-g", "as-rows", "--new-group")
    with monkeypatch.context() as patched:
        patched.setattr(PrintHandler, "fields", None)
        wanted = run(*words, "-g", "as-messages", "--new-group")
    assert found.code == wanted.code
    return found, wanted


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_the_bytes_are_those_of_messages(monkeypatch, as_rows, tmp_path, form):
    """Of a store with odd texts, transactions, retries and dead letters; each queue is in order."""
    monkeypatch.setattr(get_message, "_FEW", 1)
    root = make_rich_store(tmp_path / "s", now_ms() - 600_000).root  # what is delayed is not due
    with StoreView.open(root) as view:
        queues = [queue_id for topic, queue_id in view.queues() if topic == TOPIC]
    for queue_id in queues:
        words = ("consume", TOPIC, "-e", "--from-where", "first", "-Q", queue_id, "-S", root)
        found, wanted = both_ways(monkeypatch, *words, *form)
        assert found.raw == wanted.raw
        assert committed(root, TOPIC, "as-rows") == committed(root, TOPIC, "as-messages")
    assert sum(as_rows)


def test_properties_of_the_client_are_shown_by_all_members(store, as_rows):
    fill(store, 100)
    rows = map(json.loads, consume("-e", "-o", "jsonl").lines)
    assert all("CONSUME_START_TIME" in row["properties"] for row in rows)
    assert not sum(as_rows)


@pytest.mark.parametrize("limit", [("-c", 150), ("--offset", ":150")])
def test_it_ends_within_the_rows_of_a_pull(store, as_rows, limit):
    bodies = fill(store, 400)
    assert consume(*limit).raw.split() == bodies[:150]
    assert as_rows == [150]
    assert committed(store) == {0: 150}
    assert consume("-e").raw.split() == bodies[150:]
    assert committed(store) == {0: 400}


def test_a_damaged_body_within_the_rows_is_left_out(monkeypatch, store, as_rows):
    bodies = fill(store, 400, size=40)
    with StoreView.open(store) as view:
        unit = view.unit("t", 0, 200)
    assert unit is not None
    path = store / "commitlog" / f"{0:020}"
    whole = path.read_bytes()
    at = whole.index(bodies[200], unit[0])
    path.write_bytes(whole[:at] + b"#" + whole[at + 1 :])
    found, wanted = both_ways(monkeypatch, "consume", "t", "-e")
    assert found.raw == wanted.raw
    assert found.raw.split() == bodies[:200] + bodies[201:]
    assert as_rows[0] == 200
    assert committed(store, group="as-rows") == committed(store, group="as-messages") == {0: 400}
    path.write_bytes(whole)


def test_a_body_that_can_not_be_unpacked_is_named_and_sent_back(store, as_rows):
    bodies = fill(store, 200)
    with EmbeddedBroker.open(store) as broker:
        broker.send(Message("t", b"no zlib"), 0, SendOptions(sys_flag=1))
    with EmbeddedBroker.open(store) as broker:
        broker.send_column("t", bodies, 0)
    result = consume("-e")
    assert (result.code, result.raw.split()) == (8, bodies * 2)
    assert "(topic t, queue 0, offset 200): the compressed body is damaged" in result.err
    assert committed(store) == {0: 401}
    assert len(run("retry", "browse", "g", "-o", "jsonl").lines) == 1
    assert sum(as_rows)


def test_what_could_not_be_written_is_not_committed(store):
    bodies = fill(store, 3000)
    with Path("/dev/full").open("wb") as full, running("-g", "g", "-e", stdout=full) as process:
        assert process.wait(MEANWHILE) == 1
        assert b"No space left" in process.stderr.read()
    assert committed(store).get(0, 0) == 0
    assert consume("-e").raw.split() == bodies


def test_a_killed_member_has_committed_no_more_than_it_printed(store):
    bodies = fill(store, 9000, size=500)
    with running("-g", "g") as process:
        part = b""
        while len(part) < 2_600_000:
            part += os.read(process.stdout.fileno(), 1 << 20)
        process.send_signal(signal.SIGKILL)
        process.wait(MEANWHILE)
        part += process.stdout.read()
    printed = part.split(b"\n")[:-1]
    assert printed == bodies[: len(printed)]
    rest = consume("-e").raw.split()
    begin = 9000 - len(rest)
    assert rest == bodies[begin:]
    assert 0 < begin <= len(printed) < 9000
