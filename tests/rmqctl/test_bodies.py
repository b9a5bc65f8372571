"""Bodies that no reader can use: those that cannot be unpacked, and empty ones."""

import gzip
import json
import re
import zlib

import pytest

from broker.api.send import SendOptions
from broker.api.transactions import LocalTransactionState
from broker.embedded.broker import EmbeddedBroker
from broker.errors import MessageIllegalError
from client.producer.transaction_producer import TransactionProducer
from client.pull.lite_pull_consumer import LitePullConsumer
from client.pull.pull_consumer import PullConsumer
from rmqctl.message.exchange.import_reader import raw_messages
from storage.config import SMALL_STORE
from storage.format.errors import BodyError
from storage.format.message import Message, MessageQueue
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.carve.records import record_of
from storage.tools.fsck import fsck
from tests.support.cli import run

_BAD = {
    "plain": (b"no zlib at all", 0x001),
    "gzip": (gzip.compress(b"a body"), 0x301),
    "raw deflate": (zlib.compress(b"a body")[2:-4], 0x301),
    "cut": (zlib.compress(b"a longer body" * 50)[:-9], 0x301),
    "unknown type": (zlib.compress(b"a body"), 0x701),
    "type of another": (zlib.compress(b"a body"), 0x201),
    "bomb": (lambda: zlib.compress(bytes((64 << 20) + 1)), 0x301),
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A small store, which holds what fsck warns of."""
    path = tmp_path / "s"
    MessageStore.create(path, SMALL_STORE)
    monkeypatch.setenv("RMQCTL_STORE", str(path))
    return path


_LIKE_OTHERS = {"gzip", "raw deflate", "cut", "type of another"}


@pytest.fixture(
    params=[
        pytest.param(bad, id=name, marks=pytest.mark.long if name in _LIKE_OTHERS else ())
        for name, bad in _BAD.items()
    ]
)
def mixed(request, store):
    """One that cannot be unpacked between two others, in one queue."""
    body, flag = request.param
    if callable(body):
        body = body()
    run("topic", "create", "t", "--queues", 1)
    with EmbeddedBroker.open(store) as broker:
        broker.send(Message("t", b"first"), 0)
        broker.send(Message("t", body), 0, SendOptions(sys_flag=flag))
        broker.send(Message("t", b"third"), 0)
    return store


def dead_letters(store, group):
    with StoreView.open(store) as view:
        found = view.get_message(f"%DLQ%{group}", 0, 0, 32)
    return [
        (message.queue_offset, message.raw_body, message.properties) for message in found.messages
    ]


def raw_records(store):
    """The records of topic t as they lie in the log: what an export leaves out, too."""
    with StoreView.open(store) as view:
        return b"".join(record_of(found) for found in view.get_message("t", 0, 0, 32).messages)


class TestNotToBeUnpacked:
    @pytest.mark.slow
    def test_every_reader_names_it_and_goes_on(self, mixed):
        where = "(topic t, queue 0, offset 1)"
        for options in ([], ["-f", r"%s\n"], ["--body", "r"], ["-c", "9"]):
            result = run("consume", "t", "-e", *options)
            wanted = [
                line for line in ("first", "third") if options[:1] != ["--body"] or "r" in line
            ]
            assert (result.code, result.lines) == (8, wanted), options
            assert where in result.err, options
        result = run("consume", "t", "-e", "-o", "jsonl")
        assert (result.code, [json.loads(row)["body"] for row in result.lines]) == (
            8,
            ["first", "third"],
        )
        result = run("message", "search", "third")
        assert (result.code, "third" in result.out) == (8, True)

    @pytest.mark.slow
    def test_a_filter_that_asks_for_it_leaves_it_out(self, store):
        regex, where = "^(first|third)$", "left out message"
        run("topic", "create", "t", "--queues", 1)
        with EmbeddedBroker.open(store) as broker:
            for body in (b"first", b"other", b"third"):
                broker.send(Message("t", body, tags="x", keys=["k"]), 0)
            bad = Message("t", b"none", tags="x", keys=["k"])
            broker.send(bad, 0, SendOptions(sys_flag=1))
        for chosen in (["--tag", "x"], ["--key", "k"]):
            result = run("message", "query", *chosen, "--regex", regex, "-o", "jsonl")
            assert (result.code, len(result.lines)) == (8, 2), chosen
            assert "left out message" in result.err, chosen
        run("consume", "t", "-g", "g", "-e", "--exec", "false")
        result = run("retry", "agenda", "--each", "--regex", regex, "-o", "jsonl")
        assert (result.code, len(result.lines)) == (8, 2)
        assert where in result.err
        result = run("retry", "browse", "g", "--regex", regex, "-o", "jsonl")
        assert (result.code, len(result.lines)) == (8, 2)
        assert where in result.err
        result = run("retry", "dead", "g", "--regex", regex, "-n", "-o", "jsonl")
        assert (result.code, len(result.lines)) == (8, 2)
        assert where in result.err
        assert run("retry", "dead", "g", "--all", "-y").code == 0
        result = run("dlq", "redrive", "g", "--regex", regex, "-n", "-o", "jsonl")
        assert (result.code, len(result.lines)) == (8, 2)
        assert "1 dead letters cannot be read" in result.err

    @pytest.mark.parametrize("around", [[], ["--around", 1]])
    def test_a_search_counts_a_hit_that_can_not_be_shown(self, mixed, around):
        with EmbeddedBroker.open(mixed) as broker:
            bad = Message("t", b"none", keys=["wanted"])
            broker.send(bad, 0, SendOptions(sys_flag=1))
            broker.send(Message("t", b"wanted"), 0)
        result = run("message", "search", "wanted", "--in", "keys,body", "-o", "jsonl", *around)
        shown = [json.loads(row)["queue_offset"] for row in result.lines]
        assert (result.code, shown[-1]) == (8, 4)
        assert 3 not in shown
        assert "damaged records may be hits" in result.err

    @pytest.mark.slow
    @pytest.mark.parametrize("order", [[], ["--orderly"]])
    def test_a_group_makes_a_dead_letter_of_it(self, mixed, order):
        options = ["-g", "g", "-e", "--max-reconsume-times", 0, *order]
        result = run("consume", "t", *options)
        assert (result.code, result.lines) == (8, ["first", "third"])
        assert "(topic t, queue 0, offset 1)" in result.err
        ((_, _, properties),) = dead_letters(mixed, "g")
        assert "body" in properties["RMQCTL_FAILURE_MESSAGE"]
        assert "Error" in properties["RMQCTL_FAILURE_CLASS"]
        assert run("consume", "t", *options).lines == [], "the group is behind it"

    def test_no_program_is_begun(self, mixed, tmp_path):
        ran = tmp_path / "ran"
        script = f"sh -c 'echo $RMQ_QUEUE_OFFSET >> {ran}'"
        options = ["-e", "--max-reconsume-times", 0, "--exec", script]
        assert run("consume", "t", "-g", "g", *options).code == 8
        assert ran.read_text().split() == ["0", "2"]

    @pytest.mark.slow
    def test_dead_letters_that_are_left_out_are_named(self, mixed):
        run("consume", "t", "-g", "g", "-e", "--max-reconsume-times", 0, "--exec", "false")
        named = r"left out message \w+ \(topic %DLQ%g, queue 0, offset \d\): "
        exported = run("dlq", "export", "g", "-o", "jsonl")
        assert (exported.code, len(exported.lines)) == (8, 2)
        assert re.search(named, exported.err)
        for command in (
            ("browse",),
            ("groups", "--by", "tag"),
            ("export",),
            ("redrive", "-n"),
            ("ack", "-n"),
        ):
            result = run("dlq", command[0], "g", "--regex", ".", *command[1:], "-o", "jsonl")
            assert (result.code, len(re.findall(named, result.err))) == (8, 1), command
            assert "1 dead letters cannot be read" in result.err, command

    def test_one_that_is_asked_for_is_an_error_with_its_name_once(self, mixed, tmp_path):
        place = ["-t", "t", "-Q", 0, "-O", 1]
        for options in ([], ["-o", "json"], ["--save", tmp_path / "body"]):
            result = run("message", "get", *place, *options)
            assert (result.code, result.out) == (4, "")
            assert re.match(r"rmqctl: message \w+ \(topic t, queue 0, offset 1\): ", result.err)
        assert not (tmp_path / "body").exists()

    @pytest.mark.slow
    def test_a_dead_letter_of_it_is_shown_without_the_body(self, mixed):
        run("consume", "t", "-g", "g", "-e", "--max-reconsume-times", 0)
        result = run("dlq", "show", "g", "0", "-o", "json")
        assert result.code == 8
        shown = result.json()
        assert (shown["body"], shown["body_size"], shown["origin"]["topic"]) == (None, None, "t")
        assert "body" in shown["reason"]["message"]
        assert "the body is not shown: message " in result.err
        assert "topic %DLQ%g, queue 0, offset 0" in result.err
        assert run("dlq", "show", "g", "0").code == 8

    @pytest.mark.slow
    def test_redriving_takes_the_stored_bytes(self, mixed):
        run("consume", "t", "-g", "g", "-e", "--max-reconsume-times", 0, "--exec", "false")
        letters = dead_letters(mixed, "g")
        assert len(letters) == 3
        run("topic", "create", "again")
        result = run("dlq", "redrive", "g", "--all", "--target", "again", "--execute", "-y")
        assert result.code == 0, result.err
        with StoreView.open(mixed) as view:
            queues = [view.get_message("again", queue, 0, 32) for queue in range(8)]
        sent = sorted(one.raw_body for found in queues for one in found.messages)
        assert sent == sorted(body for _, body, _ in letters)

    @pytest.mark.slow
    @pytest.mark.parametrize("keeps", [[], ["--keep-times"]])
    def test_an_import_refuses_and_names_it_and_can_go_on_behind_it(self, mixed, tmp_path, keeps):
        file = tmp_path / "x.raw"
        file.write_bytes(raw_records(mixed))
        for name, skips in (("stops", []), ("goes-on", ["--skip-invalid"])):
            target = tmp_path / name
            MessageStore.create(target, SMALL_STORE)
            result = run("-S", target, "message", "import", file, *keeps, *skips)
            assert result.code == 8
            assert re.search(r"line 2: message \w+ \(topic t, queue 0, offset 1\): the", result.err)
            wanted = ["first", "third"] if skips else ["first"]
            assert run("-S", target, "consume", "t", "-e").lines == wanted

    @pytest.mark.parametrize(
        "form", ["jsonl", pytest.param("csv", marks=pytest.mark.long), "parquet"]
    )
    def test_an_export_names_it_and_writes_the_others(self, mixed, tmp_path, form):
        for options in ([], ["--regex", "."], ["--mask", "body=stars"]):
            file = tmp_path / f"x.{form}"
            result = run("message", "export", "-t", "t", "--save", file, *options)
            assert (result.code, "exported 2 messages" in result.err) == (8, True)
            assert re.search(r"left out message \w+ \(topic t, queue 0, offset 1\): ", result.err)

    def test_an_export_of_records_has_it_to_the_byte(self, mixed, tmp_path):
        file = tmp_path / "x.raw"
        assert run("message", "export", "-t", "t", "--save", file).code == 0
        with StoreView.open(mixed) as view:
            found = [message.raw_body for message in view.get_message("t", 0, 0, 32).messages]
        assert [message.raw_body for message in raw_messages(str(file))] == found

    def test_carving_takes_it_over_as_it_is_and_names_it(self, mixed, tmp_path):
        result = run("store", "carve", tmp_path / "out", "-t", "t", "--execute", "-y")
        assert result.code == 0
        said = r"message \w+ \(topic t, queue 0, offset 1\): .*; it was copied as it is"
        assert re.search(said, result.err)
        assert raw_records(tmp_path / "out") == raw_records(mixed)

    @pytest.mark.parametrize("options", [["--regex", "."], ["--mask", "body=stars"]])
    def test_carving_names_what_it_cannot_look_at(self, mixed, tmp_path, options):
        result = run("store", "carve", tmp_path / "out", "-t", "t", *options, "--execute", "-y")
        assert result.code == 8
        assert re.search(r"left out message \w+ \(topic t, queue 0, offset 1\): ", result.err)
        with StoreView.open(tmp_path / "out") as view:
            assert fsck(view).healthy
        assert len(run("-S", tmp_path / "out", "consume", "t", "-e").lines) == 2

    def test_of_many_the_first_are_named_and_the_others_counted(self, store, tmp_path):
        run("topic", "create", "t", "--queues", 1)
        with EmbeddedBroker.open(store) as broker:
            for _ in range(30):
                broker.send(Message("t", b"none"), 0, SendOptions(sys_flag=1))
        exported = run("message", "export", "-t", "t")
        carved = run("store", "carve", tmp_path / "out", "-t", "t", "--execute", "-y")
        for result, code in ((exported, 8), (carved, 0)):
            assert result.code == code
            assert result.err.count("(topic t, queue 0, offset ") == 10
            assert "and 20 more such messages" in result.err

    def test_consumers_without_a_listener_get_it_and_its_bytes(self, mixed):
        with EmbeddedBroker.open(mixed) as broker:
            queue = MessageQueue("t", broker.name, 0)
            with PullConsumer("g1", brokers=[broker]) as consumer:
                pulled = consumer.pull(queue, 0).messages
            with LitePullConsumer("g2", brokers=[broker]) as lite:
                lite.assign([queue])
                polled = lite.poll()
                lite.poll(0)
                lite.commit()
                assert lite.committed(queue) == 3
            for found in (pulled, polled):
                assert [found[0].body, found[2].body] == [b"first", b"third"]
                with pytest.raises(BodyError, match=r"\(topic t, queue 0, offset 1\)"):
                    found[1].body  # noqa: B018 - it is unpacked where it is asked for
            stored = broker.view.get_message("t", 0, 1, 1).messages[0].raw_body
            assert pulled[1].raw_body == polled[1].raw_body == stored

    def test_bench_counts_it_and_reads_the_others(self, mixed):
        result = run("bench", "consume", "t", "-o", "json")
        assert (result.code, result.json()["received"]) == (8, 2)
        assert result.json()["received_bytes"] == len(b"firstthird")
        assert "1 message could not be read; 'rmqctl store fsck' shows why" in result.err

    def test_fsck_names_it(self, mixed):
        with StoreView.open(mixed) as view:
            (finding,) = fsck(view).findings
        assert (finding.code, finding.severity) == ("BODY_UNREADABLE", "warning")
        assert "(topic t, queue 0, offset 1)" in finding.what
        assert run("store", "repair").code == 0, "it is left as it is"


class Commits:
    """Ends each transaction well."""

    def execute_local_transaction(self, message, arg):
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message):
        return LocalTransactionState.COMMIT_MESSAGE


class TestEmpty:
    @pytest.mark.parametrize(
        ("options", "given", "said"),
        [
            ([], "a\n\nb\n\n", "left out 2 blank lines"),
            (["-K", ","], "k,a\n\nk,b\n", "left out 1 blank line"),
            (["-f", "%s"], "a\n\nb\n", "left out 1 blank line"),
            (["--input", "jsonl"], '{"body":"a"}\n \r\n{"body":"b"}\n', "left out 1 blank line"),
            (["--input", "hex"], "61\n\n62\n", "left out 1 blank line"),
            (["--input", "csv"], "\nbody\na\n \r\n\nb\n", "left out 3 blank lines"),
        ],
    )
    def test_blank_lines_are_left_out_and_counted(self, store, options, given, said):
        result = run("produce", "t", *options, stdin=given.encode())
        assert (result.code, said in result.err) == (0, True), result.err
        assert sorted(run("consume", "t", "-e").lines) == ["a", "b"]

    @pytest.mark.parametrize(
        ("form", "given"),
        [
            ("jsonl", b'{"body":"a","topic":"t"}\n\n{"body":"b","topic":"t"}\n\n'),
            ("csv", b"\nbody,topic\na,t\n\nb,t\n"),
        ],
    )
    def test_an_import_counts_them_too(self, store, form, given):
        result = run("message", "import", "-", "--as", form, stdin=given)
        assert (result.code, "left out 2 blank lines" in result.err) == (0, True), result.err
        assert sorted(run("consume", "t", "-e").lines) == ["a", "b"]

    @pytest.mark.parametrize("count", [1, 40])  # objects, columns
    def test_lines_after_blank_ones_and_cells_of_several_lines_are_named_right(self, store, count):
        before = b'\nbody,flag\n\n"two\nlines",1\n' + b"a,1\n" * count
        result = run("produce", "t", "--input", "csv", stdin=before + b"b,x\n")
        line = before.count(b"\n") + 1
        assert f"line {line}: its flag is 'x', not a number" in result.err
        assert result.code == 8

    def test_an_empty_file_that_was_to_be_a_message_is_named(self, store, tmp_path):
        for name, body in (("full", b"a\n"), ("empty", b""), ("none", b"")):
            (tmp_path / name).write_bytes(body)
        full, empty, none = (tmp_path / name for name in ("full", "empty", "none"))
        result = run("produce", "t", "-q", "-D", "", full, empty, full)
        assert (result.code, result.err) == (
            8,
            f"rmqctl: left out {empty}, which is empty; --allow-empty sends empty bodies\n",
        )
        result = run("produce", "t", "-q", "-D", "", empty, none)
        assert result.code == 2
        assert f"left out {empty}, {none}, which are empty" in result.err
        assert "left out standard input, which" in run("produce", "t", "-D", "", stdin=b"").err
        assert run("consume", "t", "-e").lines == ["a", "", "a", ""]
        assert run("produce", "t", "-q", "-D", "", "--allow-empty", full, empty).code == 0
        assert len(run("consume", "t", "-e", "-o", "json").json()) == 4

    @pytest.mark.parametrize(
        ("options", "given"),
        [
            (["-K", ","], "k,a\nk,\n"),
            (["--input", "jsonl"], '{"body":"a"}\n{"body":""}\n'),
            (["--input", "csv"], 'body,tags\na,x\n"",y\n'),
        ],
    )
    def test_a_record_with_an_empty_body_is_refused(self, store, options, given):
        result = run("produce", "t", *options, stdin=given.encode())
        assert result.code == 8
        assert "the message body length is zero" in result.err
        assert run("consume", "t", "-e").lines == ["a"]

    def test_they_are_stored_where_that_is_asked_for(self, store):
        assert run("produce", "t", "--allow-empty", "-q", stdin=b"a\n\nb\n").code == 0
        assert sorted(run("consume", "t", "-e").lines) == ["", "a", "b"]
        with StoreView.open(store) as view:
            (finding,) = fsck(view).findings
        assert (finding.code, finding.severity) == ("BODY_EMPTY", "warning")

    def test_bodies_whose_lengths_end_in_zeros_are_not_empty(self, store):
        with EmbeddedBroker.open(store) as broker:
            for size in (1 << 8, 1 << 16, 3 << 20, 257, 0):
                broker.send(Message("t", b"x" * size), 0)
        with StoreView.open(store) as view:
            (finding,) = fsck(view).findings
        assert (finding.code, "the message has an empty body" in finding.what) == (
            "BODY_EMPTY",
            True,
        )

    def test_carving_names_them(self, store, tmp_path):
        run("topic", "create", "t", "--queues", 1)
        run("produce", "t", "--allow-empty", "-q", stdin=b"a\n\nb\n")
        result = run("store", "carve", tmp_path / "out", "-t", "t", "--execute", "-y")
        assert result.code == 0
        said = r"message \w+ \(topic t, queue 0, offset 1\) has an empty body; it was copied"
        assert re.search(said, result.err)
        assert raw_records(tmp_path / "out") == raw_records(store)

    @pytest.mark.slow
    def test_redriving_leaves_them_alone_and_says_so(self, store):
        run("produce", "t", "--allow-empty", "-q", stdin=b"a\n\nb\n")
        run("consume", "t", "-g", "g", "-e", "--max-reconsume-times", 0, "--exec", "false")
        assert sorted(body for _, body, _ in dead_letters(store, "g")) == [b"", b"a", b"b"]
        run("topic", "create", "again")
        args = ("dlq", "redrive", "g", "--target", "again", "--all", "-o", "jsonl")
        said = "not sent: the message body length is zero; --allow-empty sends it anyway"
        for options in ([], ["--execute", "-y"]):
            rows = [json.loads(line) for line in run(*args, *options).lines]
            assert [row["note"] for row in rows].count(said) == 1
        assert sorted(run("consume", "again", "-e").lines) == ["a", "b"]
        result = run(*args, "--allow-empty", "--execute", "-y")
        assert (result.code, len(result.lines)) == (0, 1), result.err
        assert sorted(run("consume", "again", "-e").lines) == ["", "a", "b"]

    @pytest.mark.slow
    def test_a_body_of_its_own_is_redriven(self, store, tmp_path):
        run("produce", "t", "--allow-empty", "-q", stdin=b"\n")
        run("consume", "t", "-g", "g", "-e", "--max-reconsume-times", 0, "--exec", "false")
        run("topic", "create", "again")
        (tmp_path / "body").write_bytes(b"mended")
        options = ["--set-body", tmp_path / "body", "--execute", "-y"]
        assert run("dlq", "redrive", "g", "--target", "again", "--all", *options).code == 0
        assert run("consume", "again", "-e").lines == ["mended"]

    def test_half_messages_without_a_body_are_refused(self, store, tmp_path):
        with EmbeddedBroker.open(store) as broker:
            with (
                TransactionProducer("p", Commits(), brokers=[broker]) as producer,
                pytest.raises(MessageIllegalError, match="the message body length is zero"),
            ):
                producer.send_message_in_transaction(Message("t", b""))
            assert broker.view.queues() == []

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["jsonl", "raw"])
    @pytest.mark.parametrize("keeps", [[], ["--keep-times"]])
    def test_an_import_refuses_and_names_them(self, store, tmp_path, form, keeps):
        run("topic", "create", "t", "--queues", 1)
        run("produce", "t", "--allow-empty", "-q", stdin=b"a\n\nb\n")
        file = tmp_path / f"x.{form}"
        file.write_bytes(run("message", "export", "-t", "t", "--as", form).raw)
        MessageStore.create(tmp_path / "other", SMALL_STORE)
        other = ["-S", tmp_path / "other"]
        result = run(*other, "message", "import", file, *keeps)
        assert result.code == 8
        assert "line 2: the message body length is zero" in result.err
        MessageStore.create(tmp_path / "third", SMALL_STORE)
        other = ["-S", tmp_path / "third"]
        assert run(*other, "message", "import", file, *keeps, "--allow-empty").code == 0
