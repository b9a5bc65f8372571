"""Compressed bodies and filters in columns: the bytes of messages, and no message where none is
needed."""

from dataclasses import replace

import lz4.frame
import pytest
import zstandard

from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.consume import command, inflated_table, row_fetcher
from rmqctl.output.row_block import RowText
from storage.configs.topics import TopicConfig
from storage.format.compress import compress
from storage.format.message import Message
from tests.support.cli import run
from tests.support.rich_store import SIZES

pytestmark = pytest.mark.slow
PLAIN = b'{"a":1,"text":"as it is"}'
PACKED = b'{"a":2,"text":"worth to be compressed %d"}'
FORMS = (
    ("-D", r"\0;"),
    ("-o", "jsonl"),
    ("-o", "csv", "--columns", "queue_offset,body,body_size,body_crc,store_size"),
    ("-o", "yaml", "--columns", "body,body_base64"),
    ("-f", r"%o %S %s\n"),
    ("--json-path", "a=2"),
    ("--json-path", "a=2", "-c", "2"),
    ("--body", "compressed 1", "-o", "jsonl"),
    ("--regex", "comp.*[35]", "-f", r"%o\n"),
    ("--min-size", "40"),
    ("--max-size", "30", "-o", "tsv", "--columns", "queue_id,body_size"),
    ("-k", "even", "-o", "jsonl"),
    ("--tag", "A || C"),
    ("-H", "color=r*", "-c", "3", "-f", r"%o %k\n"),
    ("-H", "color", "--tag", "A", "--json-path", "a>0", "-o", "csv"),
    ("--attempts", "1.."),
    ("--born-host", "127.*", "--limit", "2", "-o", "jsonl"),
    ("--json-path", "none = 1"),
    ("--json-path", "a = 1", "--json-path", "text ~ as"),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """One queue of each kind of body; some cannot be inflated, some inflate to a lot."""
    root = tmp_path_factory.mktemp("packed") / "s"
    create_store(root, replace(SIZES, mapped_file_size_commit_log=1 << 20))
    large = b"0123456789abcdef" * (1 << 15)
    bodies = [
        (0, PLAIN),
        *[(0x301, compress(PACKED % number)) for number in range(6)],
        (0x101, lz4.frame.compress(PACKED % 7)),
        (0x201, zstandard.ZstdCompressor().compress(PACKED % 8)),
        (0x001, compress(PACKED % 9)),
        (0x401, b"an unknown method"),
        (0x301, compress(PACKED)[:-3]),
        (0, PLAIN),
        (0x301, compress(b"\xff\xfe no text")),
        (0x301, compress(large * 3)),
        (0x301, compress(b"")),
        *[(0x301, compress(large)) for _ in range(19)],
        (0, PLAIN),
    ]
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 2, 2))
        for number, (flags, body) in enumerate(bodies):
            message = Message(
                "t",
                body,
                tags="ABC"[number % 3],
                keys=["even" if number % 2 == 0 else "odd", str(number)],
                properties={"color": "red"} if number % 4 == 0 else {},
            )
            broker.send(message, number % 2, SendOptions(sys_flag=flags))
    return root


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_rows_are_those_of_messages(monkeypatch, root, form):
    words = ("consume", "t", "-e", "-S", root, *form)
    monkeypatch.setattr(command, "_FEW", 1 << 40)
    wanted = run(*words)
    monkeypatch.setattr(command, "_FEW", -1)
    found = run(*words)
    assert (found.code, found.err) == (wanted.code, wanted.err)
    assert found.raw == wanted.raw


def test_only_what_cannot_be_a_row_is_fetched_as_a_message(monkeypatch, root):
    fetched: list[object] = []

    class Counted(row_fetcher.RowFetcher):
        def __call__(self, queue_id, offset, count):
            found = super().__call__(queue_id, offset, count)
            fetched.extend(found.items)
            return found

    monkeypatch.setattr(command, "_FEW", -1)
    monkeypatch.setattr(row_fetcher, "RowFetcher", Counted)
    assert run("consume", "t", "-e", "-S", root).code == 8
    messages = [item for item in fetched if type(item) is not RowText]
    assert len(messages) == 3  # an unknown method, a torn one, and one of more than a MiB
    assert len(fetched) == 36


def test_a_table_has_a_limit_of_inflated_bytes(monkeypatch, root):
    """The bytes are the same where each table holds one inflated body."""
    wanted = run("consume", "t", "-e", "-S", root)
    monkeypatch.setattr(command, "_FEW", -1)
    monkeypatch.setattr(inflated_table, "_INFLATED_BYTES", 600_000)
    found = run("consume", "t", "-e", "-S", root)
    assert (found.code, found.err, found.raw) == (wanted.code, wanted.err, wanted.raw)


def test_a_row_that_no_table_has_room_for_is_a_message(monkeypatch, root):
    wanted = run("consume", "t", "-e", "-S", root)
    monkeypatch.setattr(command, "_FEW", -1)
    monkeypatch.setattr(inflated_table, "MOST_BYTES", 10)
    found = run("consume", "t", "-e", "-S", root)
    assert (found.code, found.err, found.raw) == (wanted.code, wanted.err, wanted.raw)
