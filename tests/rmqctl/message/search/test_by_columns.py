"""Exports and hits that are written from columns have the bytes of rows of messages."""

import pytest

from rmqctl import native
from rmqctl.admin.messages.search.plain_search import PlainSearch
from rmqctl.admin.messages.search.run import Search
from rmqctl.output.render import RowStream
from storage.log.walk import StretchKind
from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import run
from tests.support.golden_samples import A_FEW
from tests.support.hand_made import HandMade
from tests.support.rich_store import make_rich_store

pytestmark = pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")

EXPORTS = ("--as jsonl", "--as csv", "-o tsv", "-o yaml --limit 5", "--as jsonl --limit 3")


def commands_of(root):
    """Exports and searches of a store, of all and of some of its messages."""
    with StoreView.open(root) as view:
        topics = sorted({topic for topic, _ in view.queues() if not topic.startswith("%LMQ%")})
        times = [
            message.store_timestamp
            for topic, queue_id in view.queues()
            for message in view.get_message(topic, queue_id, 0, 9).messages
        ]
    for form in EXPORTS:
        yield f"message export {form}"
    middle = sorted(times)[len(times) // 2] if times else 0
    yield f"message export --as jsonl --from {middle}"
    yield f"message export --as csv --to {middle} -Q 1"
    for topic in topics[:3]:
        yield f"message export {topic} --as jsonl"
    yield from (f"message search {word} -o jsonl" for word in ("a", "1"))
    yield f"message search --from {middle} --regex . -o csv"
    yield "message search 1 -o json --where queue_offset>1"


def same_by_columns(monkeypatch, root):
    """Run each command in both ways; gives how many rows came as columns."""
    rows = 0
    for command in commands_of(root):
        words = [*command.split(), "-S", root]
        with monkeypatch.context() as patched:
            patched.setattr(Search, "_plain_search", lambda _: None)
            patched.setattr(RowStream, "layout", lambda _: None)
            wanted = run(*words)
        written: list[bytes] = []
        write = RowStream.write_encoded
        with monkeypatch.context() as patched:
            patched.setattr(
                RowStream,
                "write_encoded",
                lambda self, made, write=write, written=written: (
                    written.extend(made),
                    write(self, made),
                ),
            )
            found = run(*words)
        assert (found.code, found.raw, found.err) == (wanted.code, wanted.raw, wanted.err), command
        rows += len(written)
    return rows


@pytest.mark.slow
@A_FEW
def test_a_golden_store(monkeypatch, name):
    assert same_by_columns(monkeypatch, golden.store(name))


@pytest.mark.slow
def test_a_store_with_odd_messages(monkeypatch, tmp_path):
    made = make_rich_store(tmp_path / "s", 1_770_000_000_000)
    assert same_by_columns(monkeypatch, made.root)


@pytest.mark.slow
def test_a_damaged_store(monkeypatch, tmp_path):
    made = HandMade()
    for number in range(400):
        made.put(f"T{number % 3}", number % 2, b"a message %d" % number, tags="a", keys=("1",))
    for number in (7, 8, 200):
        made.log[made.messages[number].commitlog_offset + 90] ^= 1
    made.log[made.messages[100].commitlog_offset + 4] ^= 1
    made.put("T0", 0, b"")
    made.log[made.messages[-1].commitlog_offset + 11] ^= 1  # a sum, and no body
    made.put("T0", 0, b"the last")
    root = made.write(tmp_path / "s")
    assert same_by_columns(monkeypatch, root)
    assert run("message", "export", "-S", root).code == 8


def test_an_export_of_topics_makes_no_objects(monkeypatch, tmp_path):
    made = HandMade()
    for number in range(50):
        made.put(f"T{number % 3}", 0, b"%d" % number)
    judged = []
    judge = PlainSearch._judge

    def counted(self, stretch, *rest):
        judged.append(stretch.kind)
        judge(self, stretch, *rest)

    monkeypatch.setattr(PlainSearch, "_judge", counted)
    result = run("message", "export", "T1", "T2", "-S", made.write(tmp_path / "s"))
    assert len(result.lines) == 33
    assert StretchKind.RECORDS not in judged
