import json
import os
import pty
import select
import subprocess
import sys

import pytest

from tests.support.cli import ROOT, run, start


def bodies(topic="t", *options):
    """The bodies of a topic in the order in which they were stored."""
    result = run("consume", topic, "-e", "-o", "jsonl", *options)
    assert result.code == 0, result.err
    return [json.loads(line)["body"] for line in result.lines]


def rows(topic="t"):
    return [json.loads(line) for line in run("consume", topic, "-e", "-o", "jsonl").lines]


@pytest.mark.feature(2)
def test_lines_become_messages_in_their_order(store):
    result = run("produce", "t", stdin=b"one\ntwo\n\nthree")
    assert result.code == 0
    assert result.raw == b""
    said, _, summary = result.err.partition("\n")
    assert said == "left out 1 blank line"
    assert summary.startswith("sent 3 messages (11 bytes) to t in ")
    assert bodies() == ["one", "two", "three"]


@pytest.mark.feature(1)
def test_one_message_prints_one_line(store):
    result = run("produce", "t", stdin=b"one\n")
    status, topic, queue_id, queue_offset, msg_id, offset_msg_id = result.out.rstrip().split("\t")
    assert (status, topic, queue_offset) == ("SEND_OK", "t", "0")
    assert result.err == ""
    row = rows()[0]
    assert (row["queue_id"], row["msg_id"]) == (int(queue_id), msg_id)
    assert row["offset_msg_id"] == offset_msg_id


def test_nothing_sends_nothing(store):
    result = run("produce", "t", stdin=b"")
    assert (result.code, result.raw) == (0, b"")
    assert "sent 0 messages" in result.err


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_acknowledgements_are_rows_when_a_format_is_asked_for(store, form):
    result = run("produce", "t", "-o", form, stdin=b"a\nb\n")
    assert result.code == 0
    if form == "json":
        assert [row["send_status"] for row in result.json()] == ["SEND_OK"] * 2
        assert list(result.json()[0]) == [
            *("send_status", "topic", "queue_id", "queue_offset", "msg_id", "offset_msg_id")
        ]
    assert len(result.lines) == {"json": 4, "jsonl": 2, "csv": 3}[form]


@pytest.mark.feature(4, 5)
def test_keys_tag_properties_and_queue_are_those_of_the_options(store):
    run(
        *("produce", "t", "-k", "k1", "-k", "k2", "--tag", "new", "-Q", 2),
        *("-H", "color=red", "-H", "eq=a=b"),
        stdin=b"one\ntwo\n",
    )
    for row in rows():
        assert (row["keys"], row["tags"], row["queue_id"]) == (["k1", "k2"], "new", 2)
        assert row["properties"]["color"] == "red"
        assert row["properties"]["eq"] == "a=b"


@pytest.mark.feature(6)
def test_a_delay_is_stored_as_its_level(store):
    for options in (["--delay-level", 3], ["--delay", "10s"]):
        assert run("produce", "t", *options, stdin=b"later\n").code == 0
    waiting = rows("SCHEDULE_TOPIC_XXXX")
    assert [row["properties"]["DELAY"] for row in waiting] == ["3", "3"]
    assert [row["queue_id"] for row in waiting] == [2, 2]
    assert {row["properties"]["REAL_TOPIC"] for row in waiting} == {"t"}
    assert run("consume", "t", "-e").out == ""


@pytest.mark.slow
def test_levels_are_those_of_the_store(store):
    assert run("broker", "config", "set", "messageDelayLevel", "1s 7s", "--yes").code == 0
    result = run("produce", "t", "--delay-level", 3, stdin=b"x\n")
    assert (result.code, result.out) == (2, "")
    assert "3 is not a level: levels are 1 (1s) to 2 (7s)" in result.err
    assert run("produce", "t", "--delay", "5s", stdin=b"x\n").code == 2
    assert run("produce", "t", "--delay", "7s", stdin=b"x\n").code == 0
    assert [row["properties"]["DELAY"] for row in rows("SCHEDULE_TOPIC_XXXX")] == ["2"]


def test_with_dry_run_set_for_all_commands_produce_sends_nothing(store, monkeypatch):
    monkeypatch.setenv("RMQCTL_DRY_RUN", "1")
    result = run("produce", "t", stdin=b"x\n")
    assert (result.code, result.out) == (2, "")
    assert "produce has no dry run" in result.err


def test_a_level_that_is_too_high_makes_no_store(own_home):
    assert run("produce", "t", "--delay-level", 19, stdin=b"x\n").code == 2
    assert list(own_home.iterdir()) == []


def test_a_delay_without_a_level_lists_the_levels(store):
    result = run("produce", "t", "--delay", "7s", stdin=b"x\n")
    assert result.code == 2
    assert "1s, 5s, 10s" in result.err


@pytest.mark.feature(9)
@pytest.mark.parametrize(
    ("options", "data", "expected"),
    [
        (["-D", r"\0"], b"a\nb\0c", ["a\nb", "c"]),
        (["-D", "--"], b"a--b--", ["a", "b"]),
        (["-D", ""], b"a\nb\n", ["a\nb\n"]),
        (["--input", "hex"], b"6869\n", ["hi"]),
        (["--input", "hex", "--skip-invalid"], b"6869\nzz\n", ["hi"]),
        (["-c", 2], b"a\nb\nc\n", ["a", "b"]),
        (["-c", 0], b"a\nb\nc\n", []),
        (["--batch", 1], b"a\nb\nc\n", ["a", "b", "c"]),
        (["--sync"], b"a\nb\n", ["a", "b"]),
        (["--async-flush"], b"a\n", ["a"]),
        (["--rate", "1000/s"], b"a\nb\nc\n", ["a", "b", "c"]),
        (["--template", "order %i%%"], b"", ["order 1%"]),
        (["--template", "order %i of %t", "-c", 3], b"", [f"order {i} of t" for i in (1, 2, 3)]),
    ],
)
def test_ways_to_read_and_to_go(store, options, data, expected):
    run("topic", "create", "t")
    run("produce", "t", *options, stdin=data)
    assert bodies() == expected


@pytest.mark.feature(2)
def test_files_are_read_one_after_the_other(store, tmp_path):
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("4")
    assert run("produce", "t", tmp_path / "a", "-", tmp_path / "b", stdin=b"3\n").code == 0
    assert bodies() == ["1", "2", "3", "4"]


@pytest.mark.parametrize("batch", ["1", "3", "1000"])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_count_is_that_of_the_messages_that_are_sent_also_after_a_refused_one(store, form, batch):
    bodies = ["0", "", *map(str, range(1, 40))]
    rows = {
        "jsonl": [json.dumps({"body": body}) for body in bodies],
        "csv": ["body,flag", *(f"{body},1" for body in bodies)],
    }
    options = ["--skip-invalid", "-c", "30", "--batch", batch]
    result = run("produce", "t", "--input", form, *options, stdin="\n".join(rows[form]).encode())
    assert result.code == 8
    assert "left out 1 message " in result.err
    assert run("consume", "t", "-e").lines == [str(number) for number in range(30)]


@pytest.mark.feature(3)
def test_a_key_delimiter_divides_key_and_body(store):
    run("produce", "t", "-K", ":", stdin=b"k1:a:b\n:none\nk2 k3:c\n")
    assert [(row["keys"], row["body"]) for row in rows()] == [
        (["k1"], "a:b"),
        ([], "none"),
        (["k2", "k3"], "c"),
    ]


@pytest.mark.slow
@pytest.mark.feature(3, 20, 24)
def test_a_template_reads_what_it_prints(store):
    run("produce", "t", "-k", "k1", "--tag", "x", "-H", "a=1", stdin=b"one\ntwo\n")
    form = r"%k{json} %g %h{json} %q %s{base64}\n"
    copy = run("consume", "t", "-e", "-f", form)
    assert run("produce", "u", "-f", form, stdin=copy.raw).code == 0
    keep = ("keys", "tags", "body", "queue_id")
    assert [[row[k] for k in keep] for row in rows("u")] == [[r[k] for k in keep] for r in rows()]
    assert [row["properties"]["a"] for row in rows("u")] == ["1", "1"]


@pytest.mark.feature(3)
def test_a_template_may_name_the_topic(store):
    run("produce", "t", "-f", "%t %s", stdin=b"u one\nt two\nu three\n")
    assert bodies("u") == ["one", "three"]
    assert bodies("t") == ["two"]


@pytest.mark.slow
@pytest.mark.feature(24)
def test_json_lines_reproduce_the_messages(store):
    run("produce", "t", "-D", r"\0", stdin=b"\xff\x00\0text\0\xc3\xbc\0\0")
    run("produce", "t", "-k", "a", "-k", "b", "--tag", "x", "-H", "color=r\u00f6d", stdin=b"y\n")
    lines = run("consume", "t", "-e", "-o", "jsonl")
    assert run("produce", "u", "--input", "jsonl", stdin=lines.raw).code == 0
    keep = ("body", "body_base64", "keys", "tags", "flag", "body_size")
    for one, two in zip(rows("t"), rows("u"), strict=True):
        assert [one.get(name) for name in keep] == [two.get(name) for name in keep]
        assert one["properties"].get("color") == two["properties"].get("color")
        assert one["msg_id"] != two["msg_id"]


@pytest.mark.slow
@pytest.mark.feature(3, 136)
def test_csv_names_its_columns(store):
    run("produce", "t", "-k", "a", "-k", "b", "--tag", "x", stdin=b'one\n"two"\n')
    copy = run("consume", "t", "-e", "-o", "csv")
    assert run("produce", "u", "--input", "csv", stdin=copy.raw).code == 0
    assert [(r["body"], r["keys"], r["tags"]) for r in rows("u")] == [
        ("one", ["a", "b"], "x"),
        ('"two"', ["a", "b"], "x"),
    ]
    assert run("produce", "v", "--input", "csv", stdin=b'body,color\n"a\nb",red\nc,\n').code == 0
    assert [(r["body"], r["properties"].get("color")) for r in rows("v")] == [
        ("a\nb", "red"),
        ("c", None),
    ]


@pytest.mark.feature(5)
def test_an_ordering_key_keeps_messages_in_one_queue(store):
    run("produce", "t", "--ordering-key", "order-1", stdin=b"a\nb\nc\n")
    assert len({row["queue_id"] for row in rows("t")}) == 1
    run("produce", "u", "--ordering-key", "%k", "-K", ":", stdin=b"a:1\nb:2\na:3\nb:4\n")
    placed = {(row["keys"][0], row["queue_id"]) for row in rows("u")}
    assert len(placed) == len({queue_id for _, queue_id in placed}) == 2


def test_tee_prints_what_was_sent(store):
    result = run("produce", "t", "-T", stdin=b"a\nb\n")
    assert result.raw == b"a\nb\n"
    assert run("produce", "t", "-T", stdin=b"one\n").raw == b"one\n"


@pytest.mark.parametrize(
    ("options", "data", "sent", "reason"),
    [
        (
            ["--input", "jsonl"],
            b'{"body":"a"}\n{"bod":1}\n{"body":"c"}\n',
            1,
            "did you mean 'body'?",
        ),
        (["--input", "jsonl"], b"[1]\n", 0, "not a JSON object"),
        (["--input", "jsonl"], b'{"body":"a","flag":"x"}\n', 0, "flag"),
        (["--input", "jsonl"], b'{"body_base64":"*"}\n', 0, "not base64"),
        (["--input", "hex"], b"00\n0g\n", 1, "not hexadecimal"),
        (["--input", "csv"], b"body,flag\na,1\nb,x\n", 1, "not a number"),
        (["--input", "csv"], b"body\na\nb,c\n", 1, "has 2 cells"),
        (["-K", ":"], b"k:a\nnone\n", 1, "no key delimiter ':'"),
        (["-K", r"\t"], b"none\n", 0, r"no key delimiter '\t'"),
        (["-f", "%k %s"], b"a b\nnone\n", 1, "does not match the template"),
        ([], b"a\n" + b"x" * (4 << 20) + b"x\nb\n", 1, "4194305 bytes, allowed are 4194304"),
        (["-D", ""], b"x" * ((4 << 20) + 1), 0, "more than 4194304 bytes"),
        (["-K", ":"], b"k:a\n\x01:b\n", 1, "U+0001"),
    ],
)
def test_a_record_that_can_not_be_sent_is_named_and_nothing_follows_it(
    store, options, data, sent, reason
):
    run("topic", "create", "t")
    result = run("produce", "t", *options, stdin=data)
    line = sent + 1 + ("csv" in options)
    assert result.code == (8 if sent else 2)
    assert f"line {line}: " in result.err
    assert reason in result.err
    assert len(rows()) == sent


def test_what_can_not_be_sent_can_be_left_out(store):
    data = b'{"body":"a"}\nnope\n{"body":"c"}\n{}\n'
    result = run("produce", "t", "--input", "jsonl", "--skip-invalid", stdin=data)
    assert result.code == 8
    assert "left out 2 messages that cannot be sent; the first: line 2: is not JSON" in result.err
    assert bodies() == ["a", "c"]
    run("topic", "create", "u")
    assert run("produce", "u", "--input", "hex", "--skip-invalid", stdin=b"x\n").code == 2


@pytest.mark.parametrize(
    ("args", "code", "reason"),
    [
        (["a b"], 2, "has characters other than"),
        (["x" * 128], 2, "128 characters, allowed are 127"),
        (["SCHEDULE_TOPIC_XXXX"], 7, "filled by the broker"),
        (["t", "-H", "novalue"], 2, "NAME=VALUE"),
        (["t", "-H", "KEYS=x"], 2, "reserved"),
        (["t", "-H", "a=\x01"], 2, "U+0001"),
        (["t", "-H", "a=\x02b"], 2, "U+0002"),
        (["t", "-k", "\x01"], 2, "U+0001"),
        (["t", "--tag", "\x02"], 2, "U+0001 or U+0002"),
        (["t", "-H", "a=" + "x" * 40_000], 2, "32767"),
        (["t", "-Q", "-1"], 2, "not a queue"),
        (["t", "-Q", "99"], 3, "has no queue 99: it gets 4"),
        (["t", "--delay-level", "-1"], 2, "negative"),
        (["t", "--delay", "1s", "--delay-level", "1"], 2, "exclude"),
        (["t", "--queue", "1", "--ordering-key", "x"], 2, "exclude"),
        (["t", "--input", "xml"], 2, "not one of text, jsonl"),
        (["t", "--input", "csv", "-K", ":"], 2, "exclude"),
        (["t", "--template", "x", "file"], 2, "--template and FILE exclude each other"),
        (["t", "--template", "x", "-D", ";"], 2, "--delimiter and --template exclude each other"),
        (["t", "--input", "csv", "-D", ";"], 2, "--delimiter and --input csv exclude each other"),
        (["t", "--template", "%o"], 2, "cannot be generated"),
        (["t", "-f", "%k"], 2, "no body"),
        (["t", "-D", r"\q"], 2, "unknown escape"),
        (["t", "-K", ""], 2, "empty"),
        (["t", "--rate", "x"], 2, "not a rate"),
        (["t", "nofile"], 2, "no such file: nofile"),
        (["t", "/"], 2, "is a folder"),
        (["t", "-n"], 2, "no dry run"),
        (["t", "--limit", "1"], 2, "--limit is for rows; --count ends after N messages"),
        (["t", "-o", "json", "--limit", "1"], 2, "--count ends after N messages"),
        (["t", "--where", "queue_id = 1"], 2, "--where is for rows; produce sends all of"),
        (["t", "--columns", "nosuch"], 2, "'nosuch' is not a field"),
        (["t", "--delay-level", "19"], 2, "19 is not a level: levels are 1 (1s) to 18 (2h)"),
        (["t", "--batch", "0"], 2, "--batch"),
        (["t", "-S", "nowhere"], 3, "store init"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(store, args, code, reason):
    before = sorted(path.relative_to(store) for path in store.rglob("*") if path.is_file())
    result = run("produce", *args, stdin=b"x\n")
    assert (result.code, result.raw) == (code, b""), result.err
    assert reason in result.err
    assert result.err.count("\n") == 1
    assert run("topic", "list", "-o", "tsv", "--where", "kind = normal").lines[1:] == []
    if "-H" not in args and "-Q" not in args:  # those are seen when the store is open
        after = sorted(path.relative_to(store) for path in store.rglob("*") if path.is_file())
        assert after == before


@pytest.mark.slow
def test_the_default_store_is_made_on_first_use_on_a_terminal(own_home):
    terminal, inside = pty.openpty()
    with start("produce", "t", stderr=inside) as process:
        process.communicate(b"x\n", timeout=60)
    os.close(inside)
    shown = os.read(terminal, 4096).decode()
    os.close(terminal)
    assert process.returncode == 0
    assert (own_home / "rmqctl/store/commitlog").is_dir()
    assert "created the store" in shown
    assert run("produce", "t", stdin=b"y\n").err == ""
    assert bodies() == ["x", "y"]


@pytest.mark.parametrize("command", ["produce t", "message import - -t t"])
def test_a_script_makes_no_store_that_it_did_not_name(own_home, command):
    result = run(*command.split(), stdin=b'{"body": "x"}\n')
    assert (result.code, result.raw) == (3, b"")
    assert result.err == (
        f"rmqctl: there is no store here and none in {own_home}/rmqctl/store, which is created "
        "from a terminal only; create one with 'rmqctl store init DIR', and name it with "
        "--store DIR or RMQCTL_STORE=DIR\n"
    )
    assert list(own_home.iterdir()) == []


@pytest.mark.slow
def test_cron_without_a_home_makes_no_store(tmp_path):
    """As the test above, with a HOME that is missing."""
    with start(
        *("produce", "t"),
        env={"HOME": str(tmp_path / "nonexistent"), "XDG_DATA_HOME": ""},
        cwd=tmp_path,
    ) as process:
        _, err = process.communicate(b"x\n", timeout=60)
    assert process.returncode == 3
    assert b"/nonexistent/.local/share/rmqctl/store" in err
    assert not (tmp_path / "nonexistent").exists()


def test_each_file_is_a_message_without_a_delimiter(store, tmp_path):
    for name, data in (("f0", b"a\nb\n"), ("f1", b"c"), ("f2", b"d\n")):
        (tmp_path / name).write_bytes(data)
    result = run("produce", "t", "-D", "", *sorted(tmp_path.glob("f?")))
    assert result.code == 0
    assert bodies() == ["a\nb\n", "c", "d\n"]


def test_a_template_without_a_count_says_that_it_sends_one(store):
    result = run("produce", "t", "--template", "%i")
    assert (result.code, bodies()) == (0, ["1"])
    assert result.err == "--template sends one message; --count N sends N\n"
    assert run("produce", "t", "--template", "%i", "-c", 1).err == ""


def test_a_template_is_filled_when_its_message_is_due(store):
    run("produce", "t", "--template", "%T", "-c", 40, "--rate", "100/s")
    behind = [row["store_timestamp"] - int(row["body"]) for row in rows()]
    assert sum(ms < 50 for ms in behind) >= 30, behind


def test_an_illegal_name_makes_no_store(own_home):
    assert run("produce", "a b", stdin=b"x\n").code == 2
    assert run("consume", "t").code == 3
    assert list(own_home.iterdir()) == []


@pytest.mark.slow
def test_a_line_in_a_pipe_is_stored_though_the_pipe_stays_open(store):
    with start("produce", "t", "-o", "jsonl") as process:
        for number in range(3):
            process.stdin.write(b"line %d\n" % number)
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], 30)
            assert ready
            row = json.loads(process.stdout.readline())
            assert row["send_status"] == "SEND_OK"
            assert bodies()[-1] == f"line {number}"
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


@pytest.mark.slow
def test_terminating_a_producer_closes_the_store(store):
    with start("produce", "t", "-o", "jsonl") as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        process.stdout.readline()
        assert (store / "abort").exists()
        process.terminate()
        process.wait(30)
    assert process.returncode == 143
    assert not (store / "abort").exists()
    assert bodies() == ["one"]


@pytest.mark.slow
@pytest.mark.feature(2, 24)
def test_many_lines_come_back_as_they_went(store, tmp_path):
    data = b"".join(b"line %d %s\n" % (i, b"x" * (i % 97)) for i in range(30_000))
    (tmp_path / "lines").write_bytes(data)
    result = run("produce", "t", tmp_path / "lines")
    assert result.code == 0
    assert "sent 30,000 messages" in result.err
    assert run("consume", "t", "-e").raw == data


@pytest.mark.parametrize("command", ["produce t", "consume t -c 1", "topic queues", "offset list"])
@pytest.mark.slow
def test_small_work_imports_no_numpy(store, command):
    """It would cost as much as everything else together."""
    run("produce", "t", stdin=b"x\n")
    code = (
        "import sys; from rmqctl.app import main; main(sys.argv[1:]);print('numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()],
        input=b"x\n",
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines()[-1] == b"False", done.stderr


@pytest.mark.parametrize(
    "choice", [[], ["--queue", "0"], ["--queue", "3"], ["--ordering-key", "k"]]
)
def test_a_first_send_to_queues_without_settings_goes_by_any_choice(store, choice):
    run("produce", "t", "-Q", "0", stdin=b"a\n")
    for name in ("topics.json", "topics.json.bak"):
        (store / "config" / name).unlink(missing_ok=True)
    result = run("produce", "t", *choice, "-o", "json", stdin=b"b\n")
    assert result.code == 0, result.err
    assert len(run("consume", "t", "-e").lines) == 2


def test_a_count_of_queues_makes_a_sentence(store):
    run("topic", "create", "one", "--queues", 1)
    assert "has no queue 1: it has one, queue 0" in run("produce", "one", "-Q", 1, stdin=b"a").err
    new = run("produce", "new", "-Q", 9, stdin=b"a")
    assert "has no queue 9: it gets 4, numbered from 0" in new.err


def test_a_message_that_is_refused_makes_no_topic(store):
    line = b'{"body":"x","keys":"a\\u0001"}\n'
    result = run("produce", "made-by-none", "--input", "jsonl", stdin=line)
    assert (result.code, "holds U+0001" in result.err) == (2, True)
    assert "made-by-none" not in run("topic", "list").out
