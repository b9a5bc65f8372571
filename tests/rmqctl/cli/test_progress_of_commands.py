"""A progress bar of a command ends at 100 %, whatever the form of what it reads."""

import pytest

from rmqctl.cli import progress
from rmqctl.cli.progress import Progress
from tests.support.cli import run


@pytest.fixture
def shown(monkeypatch):
    """The displays of the calls; ``shares`` of each are the parts of the total that were done."""
    made = []

    class Noted(Progress):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.shares = []
            made.append(self)

        def advance(self, count, share=0):
            self.shares.append(share)
            super().advance(count, share)

    monkeypatch.setattr(progress, "Progress", Noted)
    return made


@pytest.fixture
def orders(store):
    run("topic", "create", "orders", "--queues", 1)
    lines = b"".join(b'{"body": "%d", "key": "k%d", "tag": "t"}\n' % (n, n) for n in range(3000))
    assert run("produce", "orders", "--input", "jsonl", "-q", stdin=lines).code == 0
    return store


def check(shown, words):
    before = len(shown)
    done = run(*words)
    assert done.code == 0, done.err
    (one,) = shown[before:]
    assert one.total
    assert sum(one.shares) == one.total
    assert all(share >= 0 for share in one.shares)
    assert one.count == 3000


@pytest.mark.parametrize("more", [[], ["orders"], ["--tag", "none"]])
def test_consume(orders, shown, more):
    before = len(shown)
    assert run("consume", "orders", "-e", *more).code == 0
    (one,) = shown[before:]
    assert (sum(one.shares), one.total) == (3000, 3000)


@pytest.mark.parametrize("queues", [1, 3])
@pytest.mark.parametrize(
    ("more", "passed"),
    [
        (["-c", 1100], 1100),
        (["--limit", 1100], 1100),
        (["-c", 9000], 3000),
        (["--last", 700, "-c", 500], 500),
        (["-o", "csv", "--sort", "queue_offset", "--limit", 5], 3000),
        (["-o", "csv", "--where", "queue_offset >= 0"], 3000),
    ],
)
def test_consume_up_to_a_number(store, shown, queues, more, passed):
    run("topic", "create", "t", "--queues", queues)
    assert run("produce", "t", "-q", stdin=b"text\n" * 3000).code == 0
    before = len(shown)
    assert run("consume", "t", "-e", *more).code == 0
    (one,) = shown[before:]
    assert (sum(one.shares), one.total) == (passed, passed)


@pytest.mark.parametrize(
    "more",
    [
        ["-c", 10, "--key", "k5"],
        ["-c", 10, "--tag", "t"],
        ["-c", 10, "--regex", "[05]$"],
        ["--limit", 10, "-o", "csv", "--where", "queue_offset > 10"],
        ["-c", 10, "-o", "csv", "--where", "queue_offset > 10"],
    ],
)
def test_consume_up_to_a_number_of_what_a_filter_picks_has_no_total(orders, shown, more):
    before = len(shown)
    run("consume", "orders", "-e", *more)
    (one,) = shown[before:]
    assert one.total is None


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], b"%d\n"),
        (["-D", ";;;"], b"%d;;;"),
        (["-f", "%k %g %s"], b"k t %d\n"),
        (["--input", "jsonl"], b'{"body": "%d", "properties": {"color": "red"}}\n'),
        (["--input", "csv"], b'"a\nkey",%d\n'),
    ],
)
@pytest.mark.parametrize("files", [1, 2])
def test_produce(store, shown, tmp_path, options, line, files):
    run("topic", "create", "t", "--queues", 1)
    names = []
    for file in range(files):
        path = tmp_path / f"{file}"
        count = 3000 // files
        lines = [line % n for n in range(count)]
        path.write_bytes((b"key,body\n" if "csv" in options else b"") + b"".join(lines))
        names.append(path)
    check(shown, ["produce", "t", *options, *names, "-q"])


@pytest.mark.parametrize("form", ["jsonl", "csv", "raw", "parquet"])
@pytest.mark.parametrize("more", [[], ["--keep-times"]])
def test_import(orders, shown, tmp_path, form, more):
    file, other = tmp_path / f"x.{form}", tmp_path / "other"
    assert run("message", "export", "orders", "--save", file).code == 0
    assert run("store", "init", other, "--small").code == 0
    check(shown, ["message", "import", file, *more, "-S", other, "-q"])


def test_produce_with_lines_that_are_left_out(store, shown, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"body": "a"}\n\n{\n' * 3000)
    assert run("produce", "t", path, "--input", "jsonl", "--skip-invalid", "-q").code == 8
    (one,) = shown
    assert sum(one.shares) == one.total
