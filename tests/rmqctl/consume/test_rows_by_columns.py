"""Many messages are printed from columns: the bytes are those of rows of messages."""

import pytest

from rmqctl.consume import command
from rmqctl.output.row_block import RowText
from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import run
from tests.support.golden_samples import A_FEW
from tests.support.rich_store import TOPIC, make_rich_store

NO_BODY = ("-o", "tsv", "--columns", "store_timestamp,keys", "--raw")
"""A message whose body is damaged is left out here, too."""
FORMS = (
    ("-o", "jsonl"),
    ("-o", "json"),
    ("-o", "csv"),
    ("-o", "tsv", "--tz", "Europe/Berlin"),
    ("-o", "jsonl", "--columns", "queue_offset,body"),
    ("-o", "csv", "--columns", "body"),
    ("-o", "yaml"),
    NO_BODY,
    ("-o", "jsonl", "--limit", "3"),
    ("-f", r"%t %q %o %k %g %s %T %d\n"),
    ("-f", r"%s\n"),
    ("-D", r"\0;"),
    ("-o", "csv", "--columns", "queue_id,keys", "-c", "5"),
    ("-k", "all", "--max-size", "40"),
    ("--min-size", "5", "-o", "jsonl"),
    ("--regex", "[0-9]", "--born-host", "*", "-f", r"%o %k\n"),
    ("-o", "jsonl", "--where", "queue_offset >= 2 and not keys = all", "-v"),
    ("-o", "json", "--where", "body ~ 1 or tags != null"),
    ("-o", "csv", "--columns", "queue_offset", "--where", "properties.KEYS ~ a", "-k", "all"),
    ("-o", "yaml", "--where", "body = 'no such body'"),
    ("-o", "tsv", "--where", "store_timestamp > 2020-01-01 and body_size in (1, 20)"),
)


def same_by_columns(monkeypatch, root, topic, form):
    """Print a topic in both ways; gives how many messages came as rows of columns."""
    from rmqctl.consume import row_fetcher

    fetched: list[bytes] = []

    class Counted(row_fetcher.RowFetcher):
        def __call__(self, queue_id, offset, count):
            found = super().__call__(queue_id, offset, count)
            fetched.extend(item for item in found.items if type(item) is RowText)
            return found

    words = ("consume", topic, "-e", "-S", root, *form)
    monkeypatch.setattr(command, "_FEW", 1 << 40)
    wanted = run(*words)
    with monkeypatch.context() as patched:
        patched.setattr(command, "_FEW", -1)
        patched.setattr(row_fetcher, "RowFetcher", Counted)
        found = run(*words)
    assert (found.code, found.err) == (wanted.code, wanted.err)
    assert found.raw == wanted.raw
    return len(fetched)


def topics_of(root):
    with StoreView.open(root) as view:
        return sorted({topic for topic, _ in view.queues()})


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A store with odd messages, for reading only."""
    return make_rich_store(tmp_path_factory.mktemp("odd") / "s", 1_770_000_000_000).root


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_a_store_with_odd_messages(monkeypatch, odd, form):
    assert same_by_columns(monkeypatch, odd, TOPIC, form)


@pytest.mark.slow
@A_FEW
def test_a_golden_store(monkeypatch, name):
    root = golden.store(name)
    for topic in topics_of(root):
        same_by_columns(monkeypatch, root, topic, FORMS[0])
        same_by_columns(monkeypatch, root, topic, NO_BODY)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS[1:], ids=" ".join)
@pytest.mark.parametrize("name", golden.names())
def test_a_golden_store_in_each_form(monkeypatch, name, form):
    root = golden.store(name)
    for topic in topics_of(root):
        same_by_columns(monkeypatch, root, topic, form)
