import base64
import json
import os
import select
import signal

import lz4.frame
import pytest
import zstandard

from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from storage.configs.topics import TopicConfig
from storage.format.compress import compress
from storage.format.message import Message
from tests.support.aged_store import fill
from tests.support.cli import run, start


def send(*bodies, topic="t", options=()):
    data = b"".join(body.encode() + b"\n" for body in bodies)
    result = run("produce", topic, "-q", *options, stdin=data)
    assert result.code == 0, result.err


def lines(*options, topic="t"):
    result = run("consume", topic, *options)
    assert result.code == 0, result.err
    return result.lines


@pytest.fixture
def ten(store):
    """Ten messages, two in each of five queues."""
    run("topic", "create", "t", "--queues", 5)
    send(*[f"m{i}" for i in range(10)])
    return store


@pytest.fixture
def one_queue(store):
    """Six messages in one queue."""
    run("topic", "create", "t", "--queues", 1)
    send(*[f"m{i}" for i in range(6)])
    return store


@pytest.mark.feature(12)
def test_bodies_come_in_the_order_in_which_they_were_stored(ten):
    assert lines("-e") == [f"m{i}" for i in range(10)]


def test_a_topic_without_messages_prints_nothing(store):
    run("topic", "create", "t")
    assert run("consume", "t", "-e")[:2] == (0, b"")
    assert run("consume", "t", "-e", "-o", "json").json() == []


@pytest.mark.feature(14, 16, 17)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--offset", "start", "-e"], [0, 1, 2, 3, 4, 5]),
        (["--offset", "end", "-e"], []),
        (["--offset", "2", "-e"], [2, 3, 4, 5]),
        (["--offset", "2:", "-e"], [2, 3, 4, 5]),
        (["--offset", ":2"], [0, 1]),
        (["--offset", "2:4"], [2, 3]),
        (["--offset", ":end"], [0, 1, 2, 3, 4, 5]),
        (["--offset", "4:99"], [4, 5]),
        (["--offset", "99", "-e"], []),
        (["--offset", "+4", "-e"], [4, 5]),
        (["--offset", "-2", "-e"], [4, 5]),
        (["--offset", "-99", "-e"], [0, 1, 2, 3, 4, 5]),
        (["--offset", "@-1h", "-e"], [0, 1, 2, 3, 4, 5]),
        (["--offset", "@-1h:end"], [0, 1, 2, 3, 4, 5]),
        (["--offset", "@+1h", "-e"], []),
        (["--offset", "s@2020-01-01", "-e"], [0, 1, 2, 3, 4, 5]),
        (["--offset", "e@2020-01-01"], []),
        (["--offset", "2", "--to", "+1h"], [2, 3, 4, 5]),
        (["--last", "2"], [4, 5]),
        (["--last", "0"], []),
        (["--last", "99"], [0, 1, 2, 3, 4, 5]),
        (["-c", "2"], [0, 1]),
        (["-c", "0"], []),
        (["-c", "99"], [0, 1, 2, 3, 4, 5]),
        (["--offset", "1", "-c", "2"], [1, 2]),
        (["-c", "1", "--body", "m3"], [3]),
    ],
)
def test_positions_and_counts(one_queue, options, expected):
    assert lines(*options) == [f"m{i}" for i in expected]


def test_the_last_of_all_queues_together(ten):
    assert lines("--last", 3) == ["m7", "m8", "m9"]
    assert lines("--last", 3, "-Q", "0") == lines("-e", "-Q", "0")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--last", 2, "--to", "-150m"], ["-5h", "-4h"]),
        (["--last", 2, "--offset", "e@-150m"], ["-5h", "-4h"]),
        (["--last", 99, "--to", "-150m"], ["-6h", "-5h", "-4h"]),
        (["--last", 2, "--to", "-150m", "-c", 1], ["-5h"]),
        (["--last", 2, "--to", "-150m", "-Q", 1], ["-5h"]),
        (["--last", 2, "--to", "+1h"], ["-2h", "-1h"]),
        (["--last", 2, "--to", "-150m", "-o", "jsonl", "--columns", "body"], ["-5h", "-4h"]),
        (["--last", 0, "--to", "-150m"], []),
    ],
)
def test_the_last_messages_are_those_before_an_end(tmp_path, options, expected):
    ages = ("-6h", "-5h", "-4h", "-2h", "-1h")
    rows = ({"at": age, "topic": "t", "body": age, "queue": n % 2} for n, age in enumerate(ages))
    fill(tmp_path / "s", map(json.dumps, rows))
    result = run("consume", "t", "-S", tmp_path / "s", *options)
    printed = [json.loads(line)["body"] if "{" in line else line for line in result.lines]
    assert (result.code, printed, result.err) == (0, expected, "")


def test_an_end_before_all_messages_leaves_none_of_the_last_and_that_is_said(one_queue):
    result = run("consume", "t", "--last", 2, "--to", "-5h")
    assert (result.code, result.raw) == (0, b"")
    assert "no message of t lies in the range" in result.err


@pytest.mark.feature(17)
def test_a_position_counted_from_the_end_is_of_each_queue(ten):
    rows = run("consume", "t", "--offset", "-1", "-e", "-o", "json").json()
    assert {(row["queue_id"], row["queue_offset"]) for row in rows} == {(q, 1) for q in range(5)}


@pytest.mark.slow
@pytest.mark.feature(18)
def test_a_topic_that_is_copied_into_itself_ends(ten):
    with start("produce", "t", "-q") as writer:  # stores a line while the next one is read
        with start("consume", "t", "-e", stdout=writer.stdin) as reader:
            writer.stdin.close()
            assert reader.wait(60) == 0
        assert writer.wait(60) == 0
    assert lines("-e") == [f"m{i}" for i in range(10)] * 2


@pytest.mark.feature(26)
def test_bodies_become_files(store, tmp_path):
    folder = tmp_path / "bodies"
    folder.mkdir()
    run("produce", "t", "-Q", 0, "-D", r"\0", stdin=b"one\n\0\xff?\xfe")
    command = f"sh -c 'cat > {folder}/$RMQ_QUEUE_OFFSET'"
    result = run("consume", "t", "-g", "g", "--offset", "start", "-c", 2, "--exec", command)
    assert result.code == 0, result.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "0": b"one\n",
        "1": b"\xff?\xfe",
    }


@pytest.mark.parametrize("options", [[], ["--count", 7], ["-f", r"%s\n"], ["-g", "g"]])
def test_a_limit_stops_it_as_a_count_does(one_queue, options):
    result = run("consume", "t", "--offset", "start", "--limit", 4, *options)
    assert result.out.splitlines() == [f"m{i}" for i in range(4)]
    if "-g" in options:
        (progress,) = run("offset", "list", "-t", "t", "-o", "json").json()
        assert progress["committed_offset"] == 4, "what was not printed comes next"


def test_options_that_shape_rows_print_rows(one_queue):
    shaped = ["--columns", "body,queue_offset", "--where", "queue_offset > 3"]
    lines = run("consume", "t", *shaped, "--limit", 2).out.splitlines()
    assert lines == ["body\tqueue_offset", "m4\t4", "m5\t5"], "and stops, without an end"
    newest = run("consume", "t", "-e", "--sort", "-queue_offset", "--limit", 1, "-o", "json")
    assert [row["body"] for row in newest.json()] == ["m5"]


@pytest.mark.parametrize(
    ("args", "code", "reason"),
    [
        (["nope", "-e"], 3, "topic nope does not exist"),
        (["t", "-e", "-Q", "9"], 3, "has no queue 9: it has 1"),
        (["t", "--offset", "x"], 2, "not a position"),
        (["t", "--offset", "stored", "-e"], 2, "needs --group"),
        (["t", "--offset", "1", "--from", "-1h"], 2, "both set the start"),
        (["t", "--offset", "1:2", "--to", "-1h"], 2, "both set the end"),
        (["t", "--offset", "1", "--last", "2"], 2, "--last and --offset exclude each other"),
        (["t", "--from", "-1h", "--last", "2"], 2, "--last and --from exclude each other"),
        (["t", "-F", "-e"], 2, "--exit and --follow exclude each other"),
        (["t", "-F", "--to", "now"], 2, "--follow and --to exclude each other"),
        (["t", "--commit"], 2, "need --group"),
        (["t", "-g", "a b", "-e"], 2, "has characters other than"),
        (["t", "-g", "g", "--last", "1"], 2, "--last and --group exclude each other"),
        (["t", "-g", "g", "--from-where", "x"], 2, "not one of last, first"),
        (["t", "-g", "g", "--from-where", "timestamp"], 2, "need each other"),
        (["t", "-f", "%x"], 2, "unknown field"),
        (["t", "-f", "%s", "--with-meta"], 2, "exclude"),
        (["t", "-D", r"\q"], 2, "unknown escape"),
        (["t", "-c", "-1"], 2, "--count"),
        (["t", "--columns", "tags", "-f", "%s"], 2, "--columns shapes rows, and --format"),
        (["t", "-g", "g", "--where", "tags = A", "--exec", "cat"], 2, "--where shapes rows, and"),
        (["t", "-g", "g", "--where", "tags = A", "--limit", "1"], 2, "--where leaves out"),
        (["t", "--sort", "tags"], 2, "it needs an end"),
        (["t", "-e", "-S", "nowhere"], 3, "store init"),
    ],
)
def test_bad_input_is_one_sentence(one_queue, args, code, reason):
    result = run("consume", *args)
    assert (result.code, result.raw) == (code, b""), result.err
    assert reason in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.feature(20, 22)
def test_templates_delimiters_and_body_forms(store):
    run("produce", "t", "-Q", 0, "-k", "k", "--tag", "x", "-D", r"\0", stdin=b'{"a": 1}\0\xff')
    assert run("consume", "t", "-e", "-f", r"%q:%o %k %g %S\n").lines == ["0:0 k x 8", "0:1 k x 1"]
    assert run("consume", "t", "-e", "-D", r"\0").raw == b'{"a": 1}\0\xff\0'
    assert run("consume", "t", "-e", "-D", "").raw == b'{"a": 1}\xff'
    assert run("consume", "t", "-e", "--body", "hex").lines == ["7b2261223a20317d", "ff"]
    assert run("consume", "t", "-e", "--body", "base64").lines == ["eyJhIjogMX0=", "/w=="]
    assert run("consume", "t", "-e", "--body", "json", "-c", 1).lines == ['{"a": 1}']
    assert run("consume", "t", "-e", "--body", "none").raw == b""


@pytest.mark.slow
@pytest.mark.feature(21)
def test_rows_have_the_fields_of_the_contract(store):
    run("produce", "t", "-Q", 0, "-k", "a", "-k", "b", "-D", r"\0", stdin=b"text\0\xff")
    result = run("consume", "t", "-e", "-o", "json")
    text, binary = result.json()
    assert " ".join(text) == (
        "topic queue_id queue_offset tags keys body body_base64 msg_id store_timestamp "
        "born_timestamp reconsume_times properties offset_msg_id commitlog_offset store_size "
        "body_size body_crc flag sys_flag born_host store_host prepared_transaction_offset"
    )
    assert (text["body"], text["keys"], text["tags"]) == ("text", ["a", "b"], None)
    assert (binary["body"], base64.b64decode(binary["body_base64"])) == (None, b"\xff")
    assert text["properties"]["UNIQ_KEY"] == text["msg_id"]
    plain = run("consume", "t", "-e", "--with-meta").lines
    assert plain[0].split("\t") == list(text)[:11]
    assert run("consume", "t", "-e", "-o", "plain").raw == b"text\n\xff\n"


@pytest.mark.feature(19)
@pytest.mark.slow
def test_following_prints_what_comes_and_ends_cleanly(ten):
    with start("consume", "t", "--offset", "end") as process:
        got = ""
        while "later" not in got:
            send("later")
            ready, _, _ = select.select([process.stdout], [], [], 0.2)
            if ready:
                got += os.read(process.stdout.fileno(), 1 << 16).decode()
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert process.stderr.read() == b""
    assert process.returncode == 130


def read_line(process, timeout=30):
    ready, _, _ = select.select([process.stdout], [], [], timeout)
    assert ready, "nothing came"
    return os.read(process.stdout.fileno(), 1 << 16).decode()


@pytest.mark.feature(19)
@pytest.mark.slow
def test_following_after_the_last(ten):
    with start("consume", "t", "--last", 1, "-F") as process:
        assert read_line(process) == "m9\n"
        send("m10")
        assert read_line(process) == "m10\n"
        process.terminate()
        process.wait(30)
    assert process.returncode == 143


@pytest.mark.slow
def test_a_new_queue_is_noticed_while_following(ten):
    with start("consume", "t", "-F", "-c", 11) as process:
        got = read_line(process)
        with EmbeddedBroker.open(ten) as broker:
            broker.update_topic(TopicConfig("t", 6, 6))
        send("m10", options=["-Q", 5])
        while process.poll() is None:
            got += read_line(process) if select.select([process.stdout], [], [], 0.1)[0] else ""
        got += process.stdout.read().decode()
    assert got.splitlines()[-1] == "m10"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "count"), [((), 4), (("-c", 2), 2), (("-g", "g", "--from-where", "first"), 4)]
)
def test_queues_that_the_settings_do_not_have_read_are_told_of(ten, options, count):
    first_two = lines("-e", "--queue", "0,1")
    assert run("topic", "alter", "t", "--read-queues", 2, "--yes").code == 0
    result = run("consume", "t", "-e", *options)
    assert result.code == 0
    assert sorted(result.lines) == sorted(first_two)[:count]
    assert result.err.splitlines()[0] == (
        "rmqctl: warning: 6 messages lie in queues 2 to 4 of t, not read as readQueueNums is 2; "
        "'rmqctl topic alter t --read-queues 5' has them read"
    )


@pytest.mark.slow
def test_queues_that_are_named_are_not_told_of_unless_they_are_not_read(ten):
    first = lines("-e", "--queue", "0")
    assert run("topic", "alter", "t", "--read-queues", 4, "--yes").code == 0
    chosen = run("consume", "t", "-e", "--queue", 0)
    assert (chosen.lines, chosen.err) == (first, "")
    refused = run("consume", "t", "-e", "--queue", 4)
    assert refused.code == 3
    assert "2 messages lie in queue 4 of t" in refused.err
    assert "topic alter t --read-queues 5" in refused.err


@pytest.mark.slow
def test_a_reader_that_has_enough_ends_it_in_silence(store):
    send(*[f"line {i}" * 20 for i in range(3000)])
    with start("consume", "t", "-e") as process:
        assert process.stdout.read(10) == b"line 0line"
        process.stdout.close()
        process.wait(30)
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
@pytest.mark.feature(12, 109, 126)
def test_reading_changes_no_file(one_queue):
    def state():
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in one_queue.rglob("*")
        }

    before = state()
    lines("-e")
    lines("-e", "-o", "json")
    lines("-g", "g", "-e", "--no-commit")
    assert state() == before


def test_damaged_messages_are_left_out_and_told_of(store):
    run("topic", "create", "t", "--queues", 1)
    send(*[f"message {i}" for i in range(5)])
    log = store / "commitlog" / ("0" * 20)
    data = log.read_bytes()
    at = data.index(b"message 2")
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b"X")
    result = run("consume", "t", "-e")
    assert result.lines == [f"message {i}" for i in (0, 1, 3, 4)]
    assert "1 message could not be read" in result.err
    assert [json.loads(x)["body"] for x in run("consume", "t", "-e", "-o", "jsonl").lines] == [
        *(f"message {i}" for i in (0, 1, 3, 4))
    ]
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b"m")


@pytest.mark.slow
def test_many_queues_and_columns_agree_with_rows(store):
    run("topic", "create", "t", "--queues", 7)
    for number in range(5):
        send(*[f"{number}-{i}" for i in range(number * 700 + 1)])
    by_columns = lines("-e")
    by_rows = [json.loads(line)["body"] for line in lines("-e", "-o", "jsonl")]
    assert by_columns == by_rows == lines("-e", "-f", r"%s\n")
    assert len(by_columns) == 7005


@pytest.mark.parametrize("group", [[], ["-g", "g"]], ids=["alone", "group"])
@pytest.mark.parametrize("few", [1000, 0], ids=["messages", "columns"])
def test_a_body_that_cannot_be_unpacked_takes_no_number(store, monkeypatch, few, group):
    monkeypatch.setattr("rmqctl.consume.command._FEW", few)
    with EmbeddedBroker.open(store) as broker:
        for body, sys_flag in ((b"a", 0), (b"no zlib", 1), (b"c", 0), (b"no zlib", 1), (b"e", 0)):
            broker.send(Message("t", body), 0, SendOptions(sys_flag=sys_flag))
    result = run("consume", "t", "-e", "-f", r"%i %s\n", *group)
    assert (result.code, len(result.lines)) == (8, 3), result.err
    numbers, bodies = zip(*(line.split() for line in result.lines), strict=True)
    assert numbers == ("1", "2", "3")
    assert sorted(bodies) == ["a", "c", "e"]


@pytest.mark.parametrize("few", [1000, 0], ids=["messages", "columns"])
def test_compressed_bodies_of_all_kinds_are_read_as_they_were_sent(store, monkeypatch, few):
    monkeypatch.setattr("rmqctl.consume.command._FEW", few)
    text = b"a body that is worth to be compressed " * 20
    kinds = {
        0x101: lz4.frame.compress(text),
        0x201: zstandard.ZstdCompressor().compress(text),
        0x301: compress(text),
    }
    with EmbeddedBroker.open(store) as broker:
        for sys_flag, body in kinds.items():
            broker.send(Message("t", body), 0, SendOptions(sys_flag=sys_flag))
    assert lines("-e") == [text.decode()] * 3
