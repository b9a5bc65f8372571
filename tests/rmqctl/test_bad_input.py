"""Impossible requests: one sentence, the documented exit code, and nothing changed on disk."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from storage.format.message import Message, MessageSysFlag
from tests.support import golden
from tests.support.cli import ROOT, run
from tests.support.java_lock import java_lock
from tests.support.privileges import without_privileges

COMPRESSED = MessageSysFlag.COMPRESSED_FLAG


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A store with a topic, three messages and a group, made by the commands themselves."""
    root = tmp_path / "made"
    assert run("store", "init", root, "--small").code == 0
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    run("produce", "t", "--queue", 0, stdin=b"one\ntwo\nthree\n")
    run("consume", "t", "-g", "g", "-e")
    return root


def contents(root: Path) -> dict[str, tuple[int, int, str]]:
    """Name, time, mode and content of everything below a folder.

    The time of the shared state does not count: reserving its blocks changes it.
    """
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        time = 0 if path.name == "shared" else info.st_mtime_ns
        digest = hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (time, info.st_mode, digest)
    return found


@contextmanager
def unchanged(root: Path):
    before = contents(root)
    yield
    assert contents(root) == before


def check(result, code, sentence):
    assert result.code == code, (result.code, result.err)
    assert result.err.startswith("rmqctl: ")
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert result.raw == b""


LONG_BODY = b"x" * ((4 << 20) + 1) + b"\n"

BAD_MESSAGES = {
    "a topic that is not made by sending": (["nope"], b"x\n", 3, "topic nope does not exist"),
    "a topic with a blank": (["a b"], b"x\n", 2, "topic 'a b' has characters other than"),
    "a topic with a slash": (["a/b"], b"x\n", 2, "topic 'a/b' has characters other than"),
    "a topic without a name": ([""], b"x\n", 2, "topic"),
    "a topic that is not ASCII": (["t\xf8pic"], b"x\n", 2, "has characters other than"),
    "a topic of 128 letters": (["x" * 128], b"x\n", 2, "127"),
    "a topic of the broker's own": (["SCHEDULE_TOPIC_XXXX"], b"x\n", 7, "filled by the broker"),
    "a body above 4 MiB": (["t"], LONG_BODY, 2, "4194304"),
    "U+0001 in a property": (["t", "-H", "a=\x01"], b"x\n", 2, "U+0001 or U+0002"),
    "U+0002 in a property": (["t", "-H", "a=\x02"], b"x\n", 2, "U+0001 or U+0002"),
    "U+0001 in a property's name": (["t", "-H", "a\x01b=c"], b"x\n", 2, "U+0001 or U+0002"),
    "U+0002 in a key": (["t", "-k", "a\x02"], b"x\n", 2, "U+0001 or U+0002"),
    "U+0001 in a tag": (["t", "--tag", "a\x01"], b"x\n", 2, "U+0001 or U+0002"),
    "a property without a name": (["t", "-H", "=x"], b"x\n", 2, "is not a property"),
    "properties above 32767 bytes": (["t", "-H", f"a={'x' * 32768}"], b"x\n", 2, "32767"),
    "a queue that the topic has not": (["t", "--queue", "9"], b"x\n", 3, "topic t has no queue 9"),
}


@pytest.fixture
def strict(made):
    """The same store where sending makes no topics: TBW102 may not be inherited from."""
    path = made / "config/topics.json"
    text = json.loads(path.read_text())
    text["topicConfigTable"]["TBW102"]["perm"] = 6
    path.write_text(json.dumps(text))
    return made


@pytest.mark.parametrize("name", BAD_MESSAGES)
@pytest.mark.slow
def test_a_message_that_can_not_be_sent_is_refused(strict, name):
    args, stdin, code, sentence = BAD_MESSAGES[name]
    with unchanged(strict / "commitlog"), unchanged(strict / "consumequeue"):
        check(run("produce", *args, stdin=stdin), code, sentence)
    topics = run("topic", "list", "--where", "kind = normal", "-o", "json").json()
    assert [row["topic"] for row in topics] == ["t"]
    assert run("store", "fsck", "-o", "json").json()["findings"] == []


BAD_LINES: dict[str, tuple[Any, str]] = {
    "U+0001": ({"properties": {"a": "\x01"}}, "U+0001 or U+0002"),
    "too long properties": ({"properties": {"a": "x" * 40_000}}, "32767"),
    "a body that is too long": ({"body": "x" * ((4 << 20) + 1)}, "4194304"),
    "no JSON": ("{", "JSON"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_LINES)
def test_in_a_stream_the_line_is_named_and_nothing_behind_it_is_sent(made, name):
    bad, sentence = BAD_LINES[name]
    bad = bad if isinstance(bad, str) else json.dumps({"body": "b", **bad})
    good = json.dumps({"body": "good"})
    first = run("produce", "t", "--input", "jsonl", stdin=f"{bad}\n{good}\n".encode())
    assert (first.code, first.raw) == (2, b"")
    assert "line 1" in first.err
    assert sentence in first.err
    later = run("produce", "t", "--input", "jsonl", stdin=f"{good}\n{bad}\n{good}\n".encode())
    assert later.code == 8
    assert "line 2" in later.err
    counts = run("topic", "queues", "t", "-o", "json", "--columns", "count").json()
    assert sum(row["count"] for row in counts) == 4


READING = [
    ["consume", "t", "-e"],
    ["topic", "list"],
    ["topic", "queues"],
    ["topic", "describe"],
    ["message", "get", "-t", "t", "-Q", "0", "-O", "0"],
    ["offset", "list"],
    ["store", "info"],
    ["store", "fsck"],
    ["store", "dump", "0"],
]
WRITING = [["produce", "t"], ["consume", "t", "-g", "h", "-e"], ["topic", "create", "u"]]
ALL = READING + WRITING


@pytest.mark.parametrize("args", ALL, ids=" ".join)
def test_a_wrong_folder_is_not_found_and_nothing_is_made(tmp_path, args):
    (tmp_path / "empty").mkdir()
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/letter").write_text("dear")
    (tmp_path / "file").write_text("dear")
    with unchanged(tmp_path):
        for name, reason in (
            ("none", "no such folder"),
            ("empty", "it is empty"),
            ("letters", "it has no commitlog folder"),
            ("file", "not a folder"),
            ("file/below", "is not a RocketMQ store"),
        ):
            check(run("-S", tmp_path / name, *args, stdin=b"x\n"), 3, reason)
            if name == "none":
                result = run("-S", tmp_path / name, *args, stdin=b"x\n")
                assert "rmqctl store init" in result.err


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue", "index", "config"])
@pytest.mark.slow
def test_a_file_where_a_folder_should_be_is_named(made, folder):
    shutil.rmtree(made / folder)
    (made / folder).write_text("dear")
    with unchanged(made):
        for args in ALL:
            check(run(*args, stdin=b"x\n"), 3, f"{folder} is a file, not a folder")


@pytest.mark.slow
def test_a_file_in_place_of_our_own_folder_is_not_written_over(made):
    shutil.rmtree(made / "rmqctl")
    (made / "rmqctl").write_text("dear")
    with unchanged(made):
        for args in WRITING:
            check(run(*args, stdin=b"x\n"), 5, "cannot be written")
        assert run("consume", "t", "-e").out == "one\ntwo\nthree\n"


@pytest.mark.slow
def test_a_newer_record_of_sizes_is_not_guessed_at(made):
    (made / "rmqctl/store.json").write_text('{"version": 99}')
    with unchanged(made):
        for args in ALL:
            check(run(*args, stdin=b"x\n"), 1, "has version 99, this rmqctl knows up to version 1")


@pytest.mark.slow
def test_a_newer_shared_page_is_not_written(made):
    page = made / "rmqctl/shared"
    data = bytearray(page.read_bytes())
    version = int.from_bytes(data[:8], sys.byteorder) + 1
    data[:8] = version.to_bytes(8, sys.byteorder)
    page.write_bytes(data)
    with unchanged(made):
        for args in WRITING[:2]:
            check(run(*args, stdin=b"x\n"), 1, "use a newer rmqctl")
        assert run("consume", "t", "-e").out == "one\ntwo\nthree\n"


@pytest.mark.slow
def test_queues_in_rocksdb_are_named(made):
    (made / "consumequeue/CURRENT").write_text("MANIFEST-000004\n")
    with unchanged(made):
        for args in ALL:
            check(run(*args, stdin=b"x\n"), 1, "consume queues in RocksDB")


@pytest.mark.slow
def test_a_store_that_a_java_broker_holds_is_read_and_not_written(made):
    with java_lock(made) as pid, unchanged(made):
        for args in WRITING:
            check(run(*args, stdin=b"x\n"), 5, f"is in use by a Java broker (pid {pid})")
        for args in READING:
            result = run(*args)
            assert (result.code, bool(result.raw)) == (0, True), result.err


def bomb():
    """66 MiB in 66 KiB: beyond what rmqctl inflates."""
    return zlib.compress(bytes(66 << 20), 9)


@pytest.fixture
def with_bomb(made):
    with EmbeddedBroker.open(made) as broker:
        message = Message("t", bomb(), keys="bomb")
        sent = broker.send(message, 0, SendOptions(sys_flag=COMPRESSED))
        broker.send(Message("t", b"after"), 0)
    return made, sent


@pytest.mark.slow
def test_a_body_that_inflates_beyond_the_limit_is_named_and_not_shown(with_bomb):
    root, sent = with_bomb
    with unchanged(root):
        for args in ([sent.msg_id], ["-t", "t", "-Q", "0", "-O", "3"]):
            check(run("message", "get", *args), 4, "inflates to more than")
        with EmbeddedBroker.open(root, read_only=True) as broker:
            position = broker.query_unique("t", sent.msg_id)[0].commitlog_offset
        dumped = run("store", "dump", position, "-o", "json")
        assert dumped.code == 4
        assert "inflates to more than" in dumped.json()["problem"]


@pytest.mark.slow
def test_a_body_that_inflates_beyond_the_limit_is_left_out_and_others_are_read(with_bomb):
    root, _ = with_bomb
    with unchanged(root):
        for options in ([], ["-o", "jsonl"]):
            result = run("consume", "t", "-e", "--offset", "4", *options)
            assert "after" in result.lines[0]
            result = run("consume", "t", "-e", *options)
            assert (result.code, result.err.count("\n")) == (8, 2)
            assert "(topic t, queue 0, offset 3): " in result.err
            assert "inflates to more than" in result.err
            bodies = (
                [json.loads(line)["body"] for line in result.lines] if options else result.lines
            )
            assert bodies == ["one", "two", "three", "after"]


@pytest.mark.parametrize("options", [[], ["-o", "jsonl"], ["-f", "%s\n"]], ids=" ".join)
@pytest.mark.slow
def test_all_but_a_body_that_can_not_be_inflated_is_read(made, options, monkeypatch):
    """By columns and by messages, in all queues; a group goes on after the bad one, and
    stands at the end of all queues then."""
    monkeypatch.setattr("rmqctl.consume.command._FEW", 0)
    lines = b"".join(b"line %d\n" % number for number in range(200))
    assert run("produce", "u", stdin=lines).code == 0
    with EmbeddedBroker.open(made) as broker:
        broker.send(Message("u", b"no zlib"), 2, SendOptions(sys_flag=COMPRESSED))
        broker.send(Message("u", b"behind"), 1)
    for _ in range(2):
        result = run("consume", "u", "-e", *options)
        assert (result.code, result.err.count("\n")) == (8, 2), result.err
        assert "(topic u, queue 2, offset 50): " in result.err
        assert len(result.lines) == 201
        if "jsonl" not in options:
            assert result.raw == lines + b"behind\n"
    group = ["-g", "g", "--from-where", "first", "--max-reconsume-times", 0]
    for code, left in ((8, 201), (0, 0)):
        result = run("consume", "u", "-e", *group, *options)
        assert (result.code, len(result.lines)) == (code, left), result.err
    assert run("consume", "u", "-e", "-Q", "2", "--offset", "50").code == 8
    assert run("consume", "u", "-e", "-Q", "1", "--offset", "50").out == "behind\n"


# -- what the system does not allow


def call(prefix, *args, cwd=None):
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "rmqctl", *map(str, args)],
        input=b"x\n",
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    err = done.stderr.decode()
    return done.returncode, done.stdout, err


@pytest.fixture
def forbidden(made):
    """Takes away permissions below the store, and gives them back at the end."""
    changed = []

    def forbid(path, mode):
        changed.append((path, path.stat().st_mode))
        path.chmod(mode)

    yield forbid
    for path, mode in reversed(changed):
        path.chmod(mode)


@pytest.mark.slow
def test_without_permission_to_write_nothing_is_written(made, forbidden):
    prefix = without_privileges()
    for path in [made, *made.rglob("*")]:
        forbidden(path, 0o555 if path.is_dir() else 0o444)
    with unchanged(made):
        for args in WRITING:
            code, out, err = call(prefix, *args)
            assert (code, out, err.count("\n")) == (5, b"", 1), err
            assert f"{made} cannot be written: no permission" in err
        code, out, err = call(prefix, "consume", "t", "-e")
        assert (code, out) == (0, b"one\ntwo\nthree\n")


@pytest.mark.slow
@pytest.mark.parametrize("part", [".", "commitlog", "config"])
def test_without_permission_to_read_that_is_said(made, forbidden, part):
    prefix = without_privileges()
    forbidden(made / part, 0o000)
    for args in (["consume", "t", "-e"], ["store", "fsck"], ["topic", "queues"]):
        code, out, err = call(prefix, *args)
        assert (code, out, err.count("\n")) == (5, b"", 1), err
        assert "ermission" in err


@pytest.mark.slow
def test_a_store_is_not_made_where_nothing_may_be_written(tmp_path):
    prefix = without_privileges()
    parent = Path(tempfile.mkdtemp(dir=tmp_path))
    parent.chmod(0o555)
    code, out, err = call(prefix, "store", "init", parent / "s")
    parent.chmod(0o755)
    assert (code, out, err.count("\n")) == (5, b"", 1)
    assert "no permission" in err
    assert list(parent.iterdir()) == []


def read_only_mount(root):
    """The words before a command that show it the store on a read-only file system."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    prefix = ["unshare", "-rm", "sh", "-c", script, "sh", str(root)]
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare on PATH")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a file system that may be mounted again, read-only (unshare -rm)")
    return prefix


@pytest.mark.slow
def test_a_read_only_file_system_is_read_and_not_written(made):
    prefix = read_only_mount(made)
    with unchanged(made):
        for args in WRITING:
            code, out, err = call(prefix, *args)
            assert (code, out, err.count("\n")) == (5, b"", 1), err
            assert "the file system is mounted read-only" in err
        for args in READING:
            code, out, err = call(prefix, *args)
            assert (code, bool(out)) == (0, True), err


@pytest.mark.slow
def test_a_java_store_on_a_read_only_file_system_can_be_read(tmp_path):
    root = golden.extract("unclean-4.9", tmp_path)
    prefix = read_only_mount(root)
    with unchanged(root):
        for args in (["topic", "queues"], ["store", "info"], ["store", "fsck", "-o", "json"]):
            code, out, err = call(prefix, *args, "-S", root)
            assert (code, bool(out)) == (0, True), err


@pytest.mark.slow
@pytest.mark.parametrize("command", ["message trace", "message life", "message get", "consume"])
def test_a_name_of_no_letters_is_refused_in_a_sentence(made, command):
    result = run(*command.split(), "")
    assert result.code == 2, result.err
    assert result.err.startswith("rmqctl: ")
    assert "internal error" not in result.err
