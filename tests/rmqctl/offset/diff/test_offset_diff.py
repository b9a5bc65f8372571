"""``offset diff`` and ``offset export``."""

import csv
import json
import shutil
import time

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.errors import CliError
from rmqctl.offset.diff.files import FileOffset, read_offset_file
from storage.configs.checksummed_json import seal
from storage.configs.offset_samples import OffsetSamples
from storage.configs.progress import ProgressFile
from tests.support import golden
from tests.support.cli import run
from tests.support.copies import copy_store


def diff(*args):
    result = run("offset", "diff", *args, "-o", "json")
    assert result.code == 0, result.err
    return result.json()


def short(rows):
    return [(row["topic"], row["queue_id"], row["offset_a"], row["offset_b"]) for row in rows]


def move(store, group, targets):
    with EmbeddedBroker.open(store) as broker:
        broker.progress.move(group, targets, {"command": "test"})


@pytest.fixture
def two_groups(store):
    """Five messages in queue 0 of t and of u; g has read all, h three of t and none of u."""
    for topic in ("t", "u"):
        run("produce", topic, "-Q", 0, stdin=b"a\nb\nc\nd\ne\n")
        run("consume", topic, "-g", "g", "-e", "-Q", 0)
    run("consume", "t", "-g", "h", "-e", "-c", 3, "-Q", 0)
    return store


@pytest.mark.feature(80)
@pytest.mark.slow
def test_two_groups_are_compared_topic_by_topic(two_groups):
    rows = diff("g", "h")
    assert short(rows) == [("t", 0, 5, 3), ("u", 0, 5, None)]
    assert [row["difference"] for row in rows] == [-2, None]
    assert {row["group"] for row in rows} == {None}
    assert diff("g", "g") == []
    assert short(diff("h", "g", "-t", "t")) == [("t", 0, 3, 5)]
    own_retry = diff("g", "group:g", "--all", "-t", "%RETRY%g")
    assert [row["difference"] for row in own_retry] == [0]


@pytest.mark.feature(80)
@pytest.mark.slow
def test_a_group_is_compared_with_a_file_of_any_kind(two_groups, tmp_path):
    plain, several = tmp_path / "kafka.csv", tmp_path / "all.csv"
    plain.write_bytes(run("offset", "export", "g").raw)
    several.write_bytes(run("offset", "export").raw)
    array = tmp_path / "all.json"
    run("offset", "export", "--save", array)
    java = two_groups / "config" / "consumerOffset.json"
    ours = two_groups / "rmqctl" / "offsets.log"
    kept = [shutil.copy(path, tmp_path / f"kept-{path.name}") for path in (java, ours)]
    move(two_groups, "g", {("t", 0): 1})
    for path in (plain, several, array, *kept):
        rows = diff(path, "g")
        assert short(rows) == [("t", 0, 5, 1)], path
        assert rows[0]["difference"] == -4
        assert rows[0]["group"] == (None if path == plain else "g")
    assert short(diff(several, array, "--all", "-g", "h", "-t", "t")) == [("t", 0, 3, 3)]


@pytest.mark.feature(80, 120)
@pytest.mark.slow
def test_two_stores_are_compared_group_by_group(two_groups, tmp_path):
    copy = tmp_path / "copy"
    copy_store(two_groups, copy, ignore=shutil.ignore_patterns("bells", "members"))
    assert diff(copy, "now") == []
    move(two_groups, "g", {("t", 0): 1, ("u", 0): None})
    move(two_groups, "h", {("t", 0): 5})
    rows = diff(copy, f"store:{two_groups}")
    assert [(row["group"], *short([row])[0]) for row in rows] == [
        ("g", "t", 0, 5, 1),
        ("g", "u", 0, 5, None),
        ("h", "t", 0, 3, 5),
    ]
    assert short(diff(copy, "h")) == [("t", 0, 3, 5)]


@pytest.mark.feature(80, 122)
@pytest.mark.slow
def test_two_times_are_compared_as_far_as_the_journal_knows(two_groups):
    before = int(time.time() * 1000)
    wait_until_after(before)
    move(two_groups, "g", {("t", 0): 2, ("u", 0): 1})
    between = int(time.time() * 1000)
    wait_until_after(between)
    run("consume", "u", "-g", "g", "-e", "-c", 2, "-Q", 0)
    rows = diff(f"@{before}", f"@{between}", "-g", "g", "-t", "t", "-t", "u")
    # What the move found in t it left there until the end; in u the group has read on since.
    assert [(row["offset_a"], row["offset_b"], row["note"]) for row in rows] == [
        (None, 2, "a: at most 5"),
        (None, None, "a: at most 5; b: 1 to 3"),
    ]
    assert [row["offset_b"] for row in diff(f"@{between}", "now", "-g", "g", "-t", "u")] == [3]


@pytest.mark.slow
def test_samples_narrow_down_where_a_group_was(two_groups):
    now = int(time.time() * 1000)
    for at, offset in ((now - 900_000, 2), (now - 800_000, 4), (now - 700_000, 5)):
        OffsetSamples(two_groups).append({"t@g": {0: offset}}, {}, at)
    rows = diff(f"@{now - 850_000}", f"@{now - 650_000}", "-g", "g", "-t", "t")
    assert [(row["offset_a"], row["offset_b"], row["note"]) for row in rows] == [
        (None, 5, "a: 2 to 4")
    ]


@pytest.mark.slow
def test_progress_that_went_back_without_a_change_is_unknown(two_groups):
    """mqadmin, or an edited file, removed it or took it back: no entry of the journal says when."""
    now = int(time.time() * 1000)
    samples = OffsetSamples(two_groups)
    samples.append({"t@g": {0: 7}, "t@gone": {0: 50}}, {}, now - 900_000)
    rows = diff(f"@{now - 850_000}", "now", "-t", "t")
    assert [(r["group"], r["offset_a"], r["offset_b"], r["note"]) for r in rows] == [
        ("g", None, 5, "a: 7, and 5 later"),
        ("gone", None, None, "a: at least 50, and none later"),
        ("h", None, 3, "a: at most 3"),
    ]


@pytest.mark.slow
def test_progress_that_was_removed_without_a_change_is_unknown_then(two_groups):
    run("offset", "reset", "g", "-t", "t", "-Q", 0, "--to-offset", 2, "--execute", "--yes")
    then = int(time.time() * 1000)
    wait_until_after(then)
    ProgressFile(two_groups).move({("t@g", 0): None}, lambda _, last: last)
    (row,) = diff(f"@{then}", "now", "-g", "g", "-t", "t")
    assert [row["offset_a"], row["offset_b"]] == [None, None]
    assert row["note"] == "a: at least 2, and none later"
    shown = run("offset", "inspect", "g", "-t", "t", "--as-of", then, "-o", "json")
    assert shown.code == 0, shown.err
    (row,) = [row for row in shown.json() if row["queue_id"] == 0]
    assert (row["committed_offset"], row["note"]) == (None, "at least 2, and none later")


def wait_until_after(timestamp):
    deadline = time.monotonic() + 10
    while int(time.time() * 1000) <= timestamp:
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["g", "nope"], 3, "'nope' is no group with progress in"),
        (["g", "group:nope"], 3, "group nope has no progress in"),
        (["g", "file:nope"], 3, "there is no file nope"),
        (["g", "store:nope"], 3, "nope"),
        (["g", "@nope"], 2, "@: 'nope' is not a time"),
        (["--", "-g", "g"], 3, "'-g' is no group with progress in"),
    ],
)
@pytest.mark.slow
def test_what_is_not_there_is_one_sentence(two_groups, args, code, sentence):
    result = run("offset", "diff", *args)
    assert (result.code, result.err.count("\n")) == (code, 1)
    assert sentence in result.err


@pytest.mark.slow
def test_a_file_without_groups_needs_one_beside_several(two_groups, tmp_path):
    path = tmp_path / "kafka.csv"
    path.write_bytes(run("offset", "export", "g").raw)
    result = run("offset", "diff", path, "now")
    assert result.code == 2
    assert "choose one with --group" in result.err
    assert short(diff(path, "now", "-g", "h", "-t", "t")) == [("t", 0, 5, 3)]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("all.csv", "now", "-g", "nope"), 3, "neither side has offsets of group nope"),
        (("kafka.csv", "now", "-g", "nope"), 3, "neither side has offsets of group nope"),
        (("g", "h", "-g", "nope"), 2, "--group nope: A has offsets of group g alone"),
        (("g", "now", "-g", "h"), 2, "--group h: A has offsets of group g alone"),
        (("now", "h.json", "-g", "g"), 2, "--group g: B has offsets of group h alone"),
        (("all.csv", "now", "-t", "nope"), 3, "neither side has offsets in topic nope"),
        (("g", "h", "-t", "t", "-t", "nope"), 3, "neither side has offsets in topic nope"),
        (("all.csv", "now", "-g", "h", "-t", "u"), 3, "of group h in topic u"),
    ],
)
@pytest.mark.parametrize("form", [(), ("-o", "json")], ids=["csv", "json"])
def test_a_comparison_of_what_neither_side_has_is_no_equality(
    two_groups, tmp_path, words, code, sentence, form
):
    (tmp_path / "all.csv").write_bytes(run("offset", "export").raw)
    (tmp_path / "kafka.csv").write_bytes(run("offset", "export", "g").raw)
    run("offset", "export", "h", "--save", tmp_path / "h.json")
    result = run("offset", "diff", *words, *form, cwd=tmp_path)
    assert (result.code, result.out) == (code, ""), result.err
    assert sentence in result.err


@pytest.mark.slow
def test_a_retry_topic_that_is_named_is_compared_between_two_groups(two_groups):
    assert short(diff("g", "h", "-t", "%RETRY%g")) == [("%RETRY%g", 0, 0, None)]


@pytest.mark.slow
def test_an_export_is_kafkas_layout(two_groups):
    assert run("offset", "export", "g").lines == ["%RETRY%g,0,0", "t,0,5", "u,0,5"]
    assert run("offset", "export", "-t", "t").lines == ["g,t,0,5", "h,t,0,3"]
    assert run("offset", "export", "g", "-Q", 1).lines == []
    rows = run("offset", "export", "h", "-t", "t", "-o", "json").json()
    assert rows == [{"group": "h", "topic": "t", "queue_id": 0, "offset": 3}]
    assert run("offset", "export", "h", "-t", "t", "-o", "csv").lines == [
        "group,topic,queue_id,offset",
        "h,t,0,3",
    ]


@pytest.mark.slow
def test_an_export_is_saved_by_the_ending_of_its_name(two_groups, tmp_path):
    table, text = tmp_path / "a.json", tmp_path / "a.csv"
    result = run("offset", "export", "h", "-t", "t", "--save", table)
    assert (result.code, result.out) == (0, "")
    assert result.err == f"wrote 1 offset to {table}\n"
    assert json.loads(table.read_text()) == [
        {"group": "h", "topic": "t", "queue_id": 0, "offset": 3}
    ]
    run("offset", "export", "h", "-t", "t", "--save", text)
    assert text.read_bytes() == b"t,0,3\r\n"
    assert not list(tmp_path.glob("*.tmp"))
    assert run("offset", "export", "--save", tmp_path / "a.txt").code == 2
    assert run("offset", "export", "--save", tmp_path / "nowhere" / "a.csv").code == 5
    assert run("offset", "export", "nope").code == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("g", "-Q", "9"), "none of the topics that were chosen has a queue 9; they have 0, 1"),
        (("g", "-Q", "0,9"), "none of the topics that were chosen has a queue 9; they have 0, 1"),
        (("g", "-t", "unread"), "group g has no progress in topic unread of "),
        (("-t", "unread"), "no group has progress in topic unread of "),
        (("g", "-Q", "1"), "group g has no progress in queue 1 of any topic of "),
    ],
)
def test_an_export_of_nothing_leaves_the_file_of_the_last_one(store, tmp_path, words, sentence):
    for topic in ("t", "unread"):
        run("topic", "create", topic, "--queues", 2)
        run("produce", topic, "-Q", 0, stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e", "-Q", 0)
    saved = tmp_path / "saved.csv"
    assert run("offset", "export", "--save", saved).code == 0
    before = saved.read_bytes()
    for more in (("--save", saved), ()):
        result = run("offset", "export", *words, *more)
        assert (result.code, result.out, saved.read_bytes()) == (3, "", before), result.err
        assert sentence in result.err


def test_an_export_of_a_store_without_progress_replaces_no_file(store, tmp_path):
    run("topic", "create", "t")
    saved = tmp_path / "saved.csv"
    saved.write_text("t,0,5\n")
    result = run("offset", "export", "--save", saved)
    assert (result.code, saved.read_text()) == (3, "t,0,5\n"), result.err
    assert f"no group has any progress in {store}, so {saved} is not written" in result.err


@pytest.mark.slow
def test_a_dry_run_saves_no_export(two_groups, tmp_path):
    table = tmp_path / "a.csv"
    result = run("offset", "export", "h", "-t", "t", "--save", table, "-n")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"dry run: would write 1 offset to {table}\n"
    assert not table.exists()
    assert run("offset", "export", "--save", tmp_path / "nowhere" / "a.csv", "-n").code == 5


@pytest.mark.parametrize("name", ["basic-4.9", "lmq-4.9", "retry-dlq-5.3"])
def test_what_is_exported_of_a_java_store_is_what_its_file_says(name, tmp_path):
    root = golden.store(name)
    (java,) = (root / "config").glob("*onsumerOffset.json")
    for ending in ("csv", "json"):
        path = tmp_path / f"all.{ending}"
        assert run("offset", "export", "-S", root, "--save", path).code == 0
        assert set(read_offset_file(path)) == set(read_offset_file(java))
        assert diff(path, java, "-S", root) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t,0,5\n", [(None, "t", 0, 5)]),
        ("g,t,0,5\r\n\r\ng,t,1,6", [("g", "t", 0, 5), ("g", "t", 1, 6)]),
        ("topic,partition,offset\nt,0,5\n", [(None, "t", 0, 5)]),
        ("topic,0,5\n", [(None, "topic", 0, 5)]),
        ("group,topic,broker,queue_id,old_offset,new_offset,note\ng,t,b,1,9,4,x\n",)
        + ([("g", "t", 1, 4)],),
        ("group,topic,queue_id,new_offset\ng,t,1,\n", [("g", "t", 1, None)]),
        ('[{"group":"g","topic":"t","queue_id":0,"offset":5}]', [("g", "t", 0, 5)]),
        ('{"topic":"t","queue_id":0,"offset":null}\n{"topic":"t","queue":1,"offset":2}\n',)
        + ([(None, "t", 0, None), (None, "t", 1, 2)],),
        ('{"offsetTable":{"t@g":{0:5}}}', [("g", "t", 0, 5)]),
        ("", []),
        ("\ufefft,0,5\n", [(None, "t", 0, 5)]),
        ('"%RETRY%\u7ec4,x",0,5\n', [(None, "%RETRY%\u7ec4,x", 0, 5)]),
    ],
)
def test_files_of_offsets_are_known_by_their_content(tmp_path, text, expected):
    path = tmp_path / "file"
    path.write_text(text, "utf-8", newline="")
    assert read_offset_file(path) == [FileOffset(*line) for line in expected]


@pytest.mark.parametrize(
    ("data", "code", "sentence"),
    [
        (b"t,0\n", 2, "line 1: it has 2 columns instead of 3"),
        (b"t,0,5\nt,x,5\n", 2, "line 2 is no topic, queue and offset"),
        (b"t,0,-1\n", 2, "line 1 is no topic, queue and offset"),
        (b"t,0,1.5\n", 2, "line 1 is no topic, queue and offset"),
        (b"[1]", 2, "entry 1 is no object"),
        (b'[{"topic":"t"}]', 2, "entry 1 is no topic, queue and offset"),
        (b'[{"topic":"t","queue_id":true,"offset":1}]', 2, "entry 1 is no topic"),
        (b'{"offsetTable":{"t@g":3}}', 2, "the offsets of 't@g' are no object"),
        (b"{", 2, "is no file of offsets"),
        (b"\xff\xfe", 2, "it is not UTF-8"),
        (b'{"crc":"00000000","entry":{}}', 4, "the check sum is wrong"),
    ],
)
def test_a_file_that_is_none_is_named_with_the_line(tmp_path, data, code, sentence):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(CliError, match=sentence) as caught:
        read_offset_file(path)
    assert caught.value.exit_code == code
    assert str(path) in str(caught.value)


def test_a_cell_without_measure_is_refused_with_its_line(store, tmp_path):
    path = tmp_path / "o.csv"
    path.write_text("T,0,5\n" + "a" * 140_000 + ",0,5\n")
    csv.field_size_limit(1 << 17)  # that of a new process; other tests raise it
    for words in (("diff", path, "g"), ("import", path, "-g", "g")):
        done = run("offset", *words)
        assert done.code == 2, done.err
        assert f"{path}: line 2: field larger than field limit" in done.err


def test_a_table_of_an_older_rmqctl_with_other_values_is_damage(store, tmp_path):
    path = tmp_path / "offsets.json"
    path.write_bytes(seal({"version": 1, "queues": {"T@g": {"0": "x"}}, "exported": {}}))
    done = run("offset", "diff", path, "g")
    assert done.code == 4, done.err
    assert f"{path} is damaged: queues.T@g.0" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "written", "options"),
    [
        (("--limit", 2), 2, "--limit"),
        (("--where", "topic = t"), 2, "--where"),
        (("--where", "topic = t", "--limit", 1), 1, "--where and --limit"),
        (("--limit", 9), 5, None),
        (("--sort", "offset"), 5, None),
    ],
)
def test_an_export_says_how_many_of_the_offsets_it_saved(
    two_groups, tmp_path, words, written, options
):
    assert len(run("offset", "export").lines) == 5
    saved = tmp_path / "some.csv"
    result = run("offset", "export", "--save", saved, *words)
    assert (result.code, len(saved.read_text().splitlines())) == (0, written)
    if options is None:
        assert result.err == f"wrote 5 offsets to {saved}\n"
    else:
        assert f"wrote {written} of 5 offsets to {saved}: {options} left out" in result.err
    dry = run("offset", "export", "--save", tmp_path / "x.json", *words, "-n")
    assert f"would write {written} " in dry.err


@pytest.mark.slow
def test_an_export_with_columns_of_its_own_is_said_to_be_none_that_is_imported(
    two_groups, tmp_path
):
    for name, columns, is_said in (
        ("a.csv", "group,topic,offset,queue_id", True),
        ("a.json", "topic,offset", True),
        ("a.csv", "group,topic,queue_id,offset", False),
        ("a.json", "offset,topic,queue_id,group", False),
    ):
        result = run("offset", "export", "--save", tmp_path / name, "--columns", columns)
        assert ("'offset import'" in result.err) == is_said, (name, columns)
