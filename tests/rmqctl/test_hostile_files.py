"""Whatever a file or standard input holds, the answer is a sentence and no traceback."""

from __future__ import annotations

import random
import time

import pytest

from tests.support.cli import run

OF_MESSAGES = [
    *([["produce", "t", "--input", form] for form in ("csv", "jsonl", "hex", "text")]),
    ["produce", "t", "-f", "%k,%g,%s"],
    ["produce", "t", "-f", "%h{json} %s{base64}"],
    *([["message", "import", "F", "--as", form] for form in ("jsonl", "csv", "raw", "parquet")]),
    ["message", "import", "F", "--as", "jsonl", "--keep-times"],
]
COMMANDS = [
    *OF_MESSAGES,
    ["message", "export", "-t", "t", "--mask", "@F"],
    ["offset", "import", "F", "-g", "g", "-n"],
    ["offset", "import", "F", "-n"],
    ["offset", "reset", "-g", "g", "-t", "t", "--from-file", "F", "-n"],
    ["offset", "reset", "-g", "g", "-t", "t", "--to-latest", "--expect", "F", "-n"],
    ["offset", "diff", "F", "F"],
    ["store", "restore", "F", "-n"],
    ["store", "repair", "--plan", "F"],
    ["store", "dump", "F"],
    ["store", "diff", "F", "F"],
    ["lag", "report", "--engine", "local", "--compare", "F"],
    ["lag", "report", "--engine", "local", "-S", "F.yaml"],
    ["topic", "create", "--from-file", "F.yaml"],
    ["topic", "list", "--config", "F"],
    ["topic", "list", "--config", "F.toml"],
    ["dlq", "redrive", "g", "--all", "--set-body", "F"],
]
PARTS = 16
SHORT_PART = 10
"""Which has texts that are nested deep and that multiply."""
DEEP = 100_000
MANY = 60_000
MULTIPLYING = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (name + 1, name + 1, b",".join([b"*%c" % name] * 9)) for name in b"abcdefgh"
)
"""Nine to the power of nine texts."""
FILES = [
    *(b"", b"\0", bytes(range(256)), b'"' * 10_001, b'"' + b"x" * 200_000, b"null", b"[1]", b'"x"'),
    *(b"[" * DEEP, b'{"a":' * DEEP, b"a = " + b"[" * DEEP, b"- " * 5000, b"a: &a [*a, *a]"),
    *(b"1e400", b'{"body":1e400}', b'{"body":NaN}', b"9" * DEEP, b'{"body":' + b"9" * DEEP + b"}"),
    b"body\r\n\x00\r\n",
    b"a,b\n" + b"1," * 100_000 + b"\n",
    "body,tags\nx,y\n".encode("utf-16"),
    b"body,queue_id\nx," + b"9" * 5000 + b"\n",
    b"topic,queue,offset\nt,0," + b"9" * 5000,
    b"topic,queue,offset\nt,0,99999999999999999999999999\n",
    b"group,topic,queue_id,old_offset\ng,t," + b"9" * 5000 + b",0\n",
    b'{"body":"\\ud800"}',
    MULTIPLYING + b"store: *i\n",
    MULTIPLYING + b"topics: [{topic: *i}]\n",
    MULTIPLYING + b"j: {<<: *i}\n",
    b"topic," + b"".join(b"c%d," % number for number in [*range(MANY), MANY - 1]) + b"x\n",
    b"topic,queue,offset\nt,0,1\n" + b"a" * 140_000 + b",0,1\n",
]
MESSAGES = [
    b'{"body":"x","%s":%s}' % (name, value)
    for name in (b"queue_id", b"delay_time_level", b"flag", b"store_timestamp", b"keys", b"tags")
    for value in (b"1e300", b"-1", b"99999999999999999999999", b"[[]]", b"{}", b'"\\u0001"')
]
WHOLE = [
    b'{"body":"x","keys":["a"],"tags":"t","properties":{"a":"b"},"queue_id":0}\n',
    b'body,keys,tags\nx,a b,t\n"y",,\n',
    b"topic,queue,offset\nt,0,1\n",
    b'topics:\n  - {topic: a, read_queues: 3}\nout: "x"\n',
]


def changed(chance: random.Random) -> bytes:
    """A whole file with some bytes changed, or no file at all."""
    if chance.random() < 0.3:
        return chance.randbytes(chance.randrange(1, 3000))
    data = bytearray(chance.choice(WHOLE))
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


@pytest.fixture
def tried(store, own_home):
    """Runs commands on a content; gives what is wrong."""
    run("produce", "t", stdin=b"a\nb\n")
    run("consume", "t", "-g", "g", "-e")

    def try_all(data: bytes, commands: list[list[str]] = COMMANDS) -> list[str]:
        for name in ("F", "F.yaml", "F.toml"):
            (own_home / name).write_bytes(data)
        found = []
        for words in commands:
            start = time.monotonic()
            result = run(*words, "--no-input", stdin=data)
            took = time.monotonic() - start
            bad = "internal error" in result.err or "Traceback" in result.err
            if bad or "\x1b" in result.err or took > 20 or len(result.err) > 5000:
                found.append(f"{words} with {data[:40]!r} ({took:.1f} s): {result.err[:300]}")
        return found

    return try_all


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=() if part == SHORT_PART else pytest.mark.long)
        for part in range(PARTS)
    ],
)
def test_files_without_measure_are_answered_in_a_sentence(tried, part):
    assert [fault for data in FILES[part::PARTS] for fault in tried(data)] == []
    assert [fault for data in MESSAGES[part::PARTS] for fault in tried(data, OF_MESSAGES)] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_changed_files_are_answered_in_a_sentence(tried, seed):
    chance = random.Random(seed)
    assert [fault for _ in range(4) for fault in tried(changed(chance))] == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_changed_files_are_answered_in_a_sentence(tried, seed):
    chance = random.Random(seed)
    assert [fault for _ in range(500) for fault in tried(changed(chance))] == []
