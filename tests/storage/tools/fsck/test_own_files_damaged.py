"""A file of rmqctl's own is damaged: readers go on, the check names it, repair makes it again."""

from __future__ import annotations

import json
import os
import warnings
from zlib import crc32

import pytest

from storage.configs.checksummed_json import body_of, seal, seal_body, unseal
from storage.configs.deleted_topics import read_deleted_topics
from storage.configs.dlq_acks import DlqAcksFile
from storage.configs.journal import AT_TIMESTAMP, Journal
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.configs.store_settings import read_store_settings
from storage.errors import CorruptFileError
from storage.layout import read_sizes
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.rich_store import SIZES

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.DamagedFileWarning")

NAMES = (
    *("store.json", "settings.json", "deleted.json", "handled.json", "offsets.json"),
    *("delays-ended.json", "queues", "journal/00000001.jsonl"),
)
"""Below rmqctl/."""
NOT_NEEDED = frozenset({"journal/00000001.jsonl"})
"""Files that only the commands which report them read."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with a changed setting, a deleted topic that began again, marks and progress."""
    root = tmp_path_factory.mktemp("made") / "s"
    MessageStore.create(root, SIZES)
    group, dlq = "readers", "%DLQ%readers"
    for line in (
        "produce kept -c 40 --template %i",
        "produce gone -c 40 --template %i",
        "broker config set fileReservedTime 24 --yes",
        "broker config set brokerName broker-b --yes",
        "topic delete gone --confirm gone -y --execute",
        "produce gone -c 3 --template new",
        f"consume kept -g {group} -e -q",
        f"produce {dlq} -c 5 --template dead -Q 0",
        f"dlq ack {group} --all --yes",
        f"offset reset -g {group} -t kept --shift-by -4 --execute --yes",
    ):
        result = run(*line.split(), "-S", root, "--no-input")
        assert result.code == 0, (line, result)
    (root / "rmqctl" / "delays-ended.json").write_bytes(
        sealed({"version": 1, "queues": {"2": [[0, 7]]}})
    )
    return root


@pytest.fixture
def root(made, tmp_path):
    """A copy of it, which a writer has had open: a page belongs to its own file."""
    root = tmp_path / "s"
    copy_store(made, root)
    MessageStore.open(root).close()
    assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0
    return root


def sealed(entry):
    body = json.dumps(entry, separators=(",", ":")).encode()
    return b'{"crc":"%08x","entry":%s}' % (crc32(body), body)


def facts(root):
    """What the files say about the store."""
    with_progress = ProgressFile(root).read().offsets()
    return (
        read_sizes(root),
        read_store_settings(root),
        dict(read_deleted_topics(root)),
        {q: m[:2] for q, m in DlqAcksFile(root).read("%DLQ%readers").items()},
        {key: queues for key, queues in with_progress.items() if queues},
    )


def flipped(path):
    """One byte in the middle is another one."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x08
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def other(path):
    """Something else, of another type all through."""
    wrong = {"store.json": b"[1e400]", "queues": b"kept\t-1\n\xff"}
    path.write_bytes(wrong.get(path.name, sealed({"version": "x"})) + b"\n")


def deep(path):
    path.write_bytes(b'{"crc":"' + b"[" * 100_000 + b"]" * 100_000)


def emptied(path):
    path.write_bytes(b"")


def in_the_way(path):
    """A pipe without a writer: opening it for reading waits for ever."""
    path.unlink()
    os.mkfifo(path)


DAMAGES = (flipped, cut, other, deep, emptied, in_the_way)
EVERY = [(damage, name) for name in NAMES for damage in DAMAGES]
SHORT = {(damage, name) for n, (damage, name) in enumerate(EVERY) if (n % 6 - n // 6) % 3 == 0}
"""Each file with two kinds of damage, each kind with two files at least."""
SHORT |= {(flipped, "journal/00000001.jsonl")}  # with its other two it stays sound, or is new
SOME = [pytest.param(*pair, marks=() if pair in SHORT else pytest.mark.long) for pair in EVERY]


def messages(root):
    result = run("consume", "kept", "-e", "-S", root)
    return result.code, sorted(result.out.split())


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "name"), SOME)
def test_readers_go_on_the_check_names_it_and_repair_makes_it_again(root, name, damage):
    if name.startswith("journal") and damage is emptied:
        return  # an empty journal is a new one: no file shows what it held
    before, path = facts(root), root / "rmqctl" / name
    whole = messages(root)
    assert whole == (0, sorted(map(str, range(1, 41)))) or len(whole[1]) == 40
    damage(path)
    assert messages(root) == whole

    checked = run("store", "fsck", "-o", "json", "-S", root)
    torn = name.startswith("journal") and damage is cut
    assert checked.code == (0 if torn else 4), checked
    found = [row for row in checked.json()["findings"] if row["file"] == f"rmqctl/{name}"]
    assert found, checked.json()["findings"]
    assert found[0]["position"] is not None

    repaired = run("store", "repair", "--execute", "--yes", "-S", root)
    assert repaired.code == 0, repaired
    assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0
    assert messages(root) == whole
    after = facts(root)
    assert after[:2] == before[:2]
    assert after[2].keys() == before[2].keys()
    assert after[3:] == before[3:]
    assert run("produce", "kept", "-S", root, stdin=b"x\n").code == 0
    assert run("consume", "gone", "-e", "-S", root).out.split() == ["new"] * 3


@pytest.mark.parametrize("name", ["store.json", "settings.json", "deleted.json"])
@pytest.mark.slow
def test_a_writer_refuses_what_it_would_have_to_guess(root, name):
    flipped(root / "rmqctl" / name)
    before = (root / "commitlog").stat().st_mtime_ns
    (root / "abort").touch()  # a writer that recovers asks for deleted topics
    refused = run("produce", "kept", "-S", root, stdin=b"x\n")
    assert (refused.code, refused.out) == (4, "")
    assert f"{name} is damaged at byte " in refused.err
    assert "'rmqctl store repair'" in refused.err
    assert (root / "commitlog").stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_name_of_another_queue_is_seen_by_its_check_sum(root):
    """Whatever queue it names: its messages would be read as those of the other one."""
    path = root / "rmqctl" / "queues"
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (
        [*reversed(lines)],
        [lines[0].replace(b"\t0\t", b"\t9\t").replace(b"\t1\t", b"\t9\t"), *lines[1:]],
    ):
        path.write_bytes(b"".join(damaged))
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            result = run("consume", "kept", "-e", "-S", root)
        assert "queues is damaged at byte 0" in result.err
        assert len(result.lines) == 40


@pytest.mark.slow
def test_marks_come_back_without_those_that_were_taken_back(root):
    assert run("dlq", "ack", "readers", "--undo", "--yes", "-S", root).code == 0
    before = facts(root)[3]
    assert not any(cursor or beyond for cursor, beyond in before.values())
    flipped(root / "rmqctl" / "handled.json")
    with pytest.raises(CorruptFileError):
        facts(root)
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert not any(cursor or beyond for cursor, beyond in facts(root)[3].values())


@pytest.mark.slow
def test_marks_that_were_set_late_for_a_killed_redrive_come_back(root):
    """The log of the time may have their only other trace: there is no receipt."""
    assert run("dlq", "ack", "readers", "--undo", "--yes", "-S", root).code == 0
    new = {"run": "R1", "handled": {"0": [[1, 3]]}}
    entry = {"group": "readers", "topic": "%DLQ%readers", "what": "settle", "old": None, "new": new}
    Journal(root).append(entry, 1_700_000_000_000)
    flipped(root / "rmqctl" / "handled.json")
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert DlqAcksFile(root).read("%DLQ%readers")[0].ranges() == [(1, 3)]


@pytest.mark.slow
def test_marks_of_a_redrive_come_back_though_earlier_ones_were_taken_back(root):
    assert run("dlq", "ack", "readers", "--undo", "--yes", "-S", root).code == 0
    to = ("--target", "kept", "-S", root)
    assert run("dlq", "redrive", "readers", "--all", "--yes", *to).code == 0
    before = facts(root)[3]
    assert any(cursor or beyond for cursor, beyond in before.values())
    flipped(root / "rmqctl" / "handled.json")
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert facts(root)[3] == before


@pytest.mark.slow
@pytest.mark.parametrize("shift_ms", [-3_600_000, 3_600_000])
@pytest.mark.parametrize("once_more", [False, True])
def test_marks_of_a_redrive_come_back_as_they_were_whatever_the_clock_said(
    root, once_more, shift_ms
):
    """Marks were taken back before the redrive, and once more after it."""
    assert run("dlq", "ack", "readers", "--undo", "--yes", "-S", root).code == 0
    to = ("--target", "kept", "-S", root)
    assert run("dlq", "redrive", "readers", "1", "2", "--yes", *to).code == 0
    if once_more:
        assert run("dlq", "ack", "readers", "2", "--undo", "--yes", "-S", root).code == 0
    before = facts(root)[3]
    (path,) = Journal(root).files()
    entries = [unseal(line) for line in path.read_bytes().splitlines()]
    shifted = [{**e, AT_TIMESTAMP: e[AT_TIMESTAMP] + shift_ms} for e in entries if e is not None]
    path.write_bytes(b"".join(seal(entry) + b"\n" for entry in shifted))
    flipped(root / "rmqctl" / "handled.json")
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert facts(root)[3] == before


DELETIONS = (
    ("topic", "delete", "%DLQ%readers", "--confirm", "%DLQ%readers"),
    ("group", "delete", "readers", "--remove-topics", "--confirm", "readers"),
)


@pytest.mark.slow
@pytest.mark.parametrize("deletion", DELETIONS, ids=["topic", "group"])
def test_marks_of_a_topic_that_was_deleted_do_not_come_back(root, deletion):
    """Neither those of users nor those of a redrive; later marks do."""
    to = ("--target", "kept", "-S", root)
    assert run("dlq", "redrive", "readers", "1", "--yes", *to).code == 0
    assert run(*deletion, "-y", "-S", root).code == 0
    new = ("produce", "%DLQ%readers", "-c", 3, "--template", "new", "-Q", 0, "-S", root)
    assert run(*new).code == 0
    assert run("group", "create", "readers", "-S", root).code == 0
    assert run("dlq", "ack", "readers", "1", "--yes", "-S", root).code == 0
    flipped(root / "rmqctl" / "handled.json")
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert DlqAcksFile(root).read("%DLQ%readers")[0].ranges() == [(1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("deletion", DELETIONS, ids=["topic", "group"])
@pytest.mark.parametrize("has_settings", [True, False])
def test_a_deleted_dead_letter_topic_does_not_come_back(root, deletion, has_settings):
    if not has_settings:
        for path in (root / "config").glob("topics.json*"):
            path.unlink()
    assert run(*deletion, "-y", "-S", root).code == 0
    (root / "rmqctl" / "deleted.json").write_bytes(b"")
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert {"gone", "%DLQ%readers"} <= read_deleted_topics(root).keys()


@pytest.mark.slow
def test_a_wrong_note_in_a_large_log_of_progress_is_found_and_mended(tmp_path):
    root = tmp_path / "s"
    MessageStore.create(root, SIZES)
    file = ProgressFile(root)
    file.commit({(f"T@g{number}", 0): QueueProgress(0, 5) for number in range(2_000)})
    file.export()
    file.recover({}, lambda *_: None)  # writes a table
    body = body_of(file.path.read_bytes()) or b""
    begin = body.index(b'"exported":')
    file.path.write_bytes(seal_body(body[:begin] + b'"exported":{"T@g0":{"0":"x"}}}') + b"\n")
    found = run("store", "fsck", "-S", root)
    assert found.code == 4, found.err
    assert 'exported.T@g0.0 is "x", not an offset' in found.out + found.err
    done = run("store", "recover-offsets", "-S", root, "--execute", "--yes")
    assert done.code == 0, done.err
    ProgressFile(root).export()
    assert len(ProgressFile(root).read().offsets()) == 2_000
