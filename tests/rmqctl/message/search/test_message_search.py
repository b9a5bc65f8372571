"""``message search`` finds what a walk through all records finds, and nothing else."""

import json
import re
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from rmqctl.admin.messages.search.byte_search import SearchBytes
from rmqctl.admin.messages.search.packed import PackedRecords
from rmqctl.admin.messages.search.pieces import PieceSearch, cut
from rmqctl.admin.messages.search.query import Query
from rmqctl.admin.messages.search.texts import literal_of
from storage.files.read_files import StoreFiles
from storage.format.errors import BodyError
from storage.format.record import decode_record, encode_record
from storage.log.record_finder import RecordFinder
from storage.log.walk import LogWalk, StretchKind
from storage.readonly import StoreView
from tests.support import golden, golden_samples
from tests.support.cli import run
from tests.support.examples import one_in
from tests.support.hand_made import HOST, HandMade

ZLIB = 0x301
HOUR_NS = 3_600_000_000_000


def calls_at(monkeypatch: pytest.MonkeyPatch, now_ns: int) -> None:
    """The program is called at this time; relative times count from it."""
    monkeypatch.setattr("rmqctl.cli.context.time.time_ns", lambda: now_ns)


def search(root: Path, *args: object) -> list[dict[str, Any]]:
    result = run("message", "search", *args, "-S", root, "-o", "jsonl")
    expected = (
        8
        if re.search(r"damaged records? may be hits", result.err)
        else golden.code_of_reading(root)
    )
    assert result.code == expected, result.err
    return [json.loads(line) for line in result.lines]


def places(root: Path, *args: object) -> list[int]:
    return [row["commitlog_offset"] for row in search(root, *args)]


def records(root: Path) -> list[Any]:
    """All whole messages of a log, by walking it."""
    found = []
    with StoreView.open(root) as view:
        log = StoreFiles(root, view.config).log
        walk = LogWalk(log, view.log_min_offset(), limit=view.log_max_offset(), search_all=True)
        while (stretch := walk.next()) is not None:
            start = stretch.start
            file = log.at(start - start % log.file_size)
            assert file is not None
            for size in stretch.sizes:
                if stretch.kind is StretchKind.RECORDS:
                    at = start % log.file_size
                    found.append(decode_record(file.map[at : at + size]))
                start += size
    return found


def holds(message: Any, word: bytes) -> bool:
    """Whether the body or the value of a property holds a word."""
    values = [item.partition(b"\x01")[2] for item in message.property_bytes.split(b"\x02")]
    try:
        return word in message.body or any(word in value for value in values)
    except BodyError:
        return any(word in value for value in values)


@pytest.mark.feature(32, 33, 35)
@golden_samples.A_FEW
@pytest.mark.slow
def test_golden_stores_give_what_a_walk_gives(name):
    root = golden.store(name)
    messages = records(root)
    words = {b"DefaultCluster", b"key", b"7"}
    for message in messages[:: max(1, len(messages) // 3)]:
        words |= {message.body[3:9], (message.tags or "T").encode(), message.msg_id[-9:].encode()}
    for word in sorted(words):
        try:
            text = word.decode("ascii")
        except UnicodeDecodeError:
            continue
        if not text.isprintable() or not text or text.startswith("-"):
            continue
        assert places(root, text) == [m.commitlog_offset for m in messages if holds(m, word)], text


@pytest.fixture
def mixed(tmp_path):
    """Messages that hold ``word`` in different parts, over several log files of 1 KiB."""
    made = HandMade()
    long = b"the word " + b"." * 5000
    made.put("T", 0, b"a word here")
    made.put("T", 1, b"nothing", tags="word")
    made.put("U", 0, b"nothing", keys=["k1", "a-word"])
    made.put("U", 0, b"nothing", properties={"color": "wordy", "sum": "3"})
    made.put("word", 0, b"in the name of the topic only")
    made.put("T", 0, b"name only", properties={"word": "x"})
    made.put("T", 1, zlib.compress(long, 5), sys_flag=ZLIB)
    made.put("T", 1, zlib.compress(b"." * 5000, 5), sys_flag=ZLIB, tags="word")
    made.put("T", 1, zlib.compress(b"." * 5000, 5), sys_flag=ZLIB)
    made.put("T", 0, b'{"id": 7, "items": [{"sku": "word-1"}]}')
    made.put("T", 0, b"wor" + b"x" * 700 + b"d")
    made.put("T", 0, b"end: word")
    root = made.write(tmp_path / "mixed")
    return root, made.messages


def found(mixed, *args):
    """Numbers of the messages that a search gives."""
    root, messages = mixed
    number = {message.commitlog_offset: i for i, message in enumerate(messages)}
    return [number[place] for place in places(root, *args)]


@pytest.mark.feature(31, 32, 33, 34, 35)
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["word"], [0, 1, 2, 3, 6, 7, 9, 11]),
        (["word", "--in", "body"], [0, 6, 9, 11]),
        (["word", "--in", "tags"], [1, 7]),
        (["word", "--in", "keys"], [2]),
        (["word", "--in", "tags,keys"], [1, 2, 7]),
        (["word", "--in", "properties"], [1, 2, 3, 7]),
        (["word", "-t", "U"], [2, 3]),
        (["word", "-t", "T", "-Q", "1"], [1, 6, 7]),
        (["word", "--tag", "word"], [1, 7]),
        (["word", "--min-size", "1K"], [6, 7]),
        (["word", "--born-host", "127.*", "--attempts", "0", "--max-size", "20"], [0, 1, 2, 3, 11]),
        (["--regex", "^a w.rd"], [0]),
        (["--regex", r"w[o]rd\b", "--in", "body"], [0, 6, 9, 11]),
        (["--regex", "wor.*d"], [0, 1, 2, 3, 6, 7, 9, 10, 11]),
        (["--regex", "^(word|k1 )"], [1, 2, 3, 7]),
        (["--json-path", "items[*].sku ~ word"], [9]),
        (["--json-path", "id > 6", "word"], [9]),
        (["--body", "word"], [0, 6, 9, 11]),
        (["-t", "word"], None),
        (["-t", "word", "--tag", "*"], [4]),
        (["-k", "k1"], [2]),
        (["-H", "color"], [3]),
        (["-H", "color=w*"], [3]),
        (["-H", "color=wordy"], [3]),
        (["-H", "word=x"], [5]),
        (["--tag", "word || other"], [1, 7]),
        (["word", "--where", "sys_flag = 769"], [6, 7]),
        (["-Q", "0", "--min-size", "700"], [10]),
        (["no such word"], []),
    ],
)
def test_what_holds_the_word_and_what_does_not(mixed, args, expected):
    if expected is None:
        assert run("message", "search", *args, "-S", mixed[0]).code == 2
    else:
        assert found(mixed, *args) == expected


def test_an_id_leads_to_its_message(mixed):
    root, _ = mixed
    row = search(root, "end: word")[0]
    assert found(mixed, "--id", row["offset_msg_id"]) == [11]


def test_times_bound_it(mixed):
    times = [message.store_timestamp for message in mixed[1]]
    assert found(mixed, "word", "--from", times[2], "--to", times[9]) == [2, 3, 6, 7]


@pytest.mark.slow
@pytest.mark.parametrize("by_units", [True, False])
@pytest.mark.parametrize("step", one_in(2, [1, 37, 100, 333, 1024]))
@pytest.mark.parametrize("word", [b"word", b"o", b"\xda\xa3 \xa7"])
def test_pieces_of_any_size_give_each_hit_once(mixed, step, word, by_units):
    root, _ = mixed
    needle = SearchBytes((word,), True)
    query = Query(needle, lambda message: holds(message, word), None, None)
    with StoreView.open(root) as view:
        log, end = StoreFiles(root, view.config).log, view.log_max_offset()
        finder = RecordFinder(log, end, view.unit, (4 << 20) + (64 << 10))
        packed = PackedRecords(view, log, finder, end, by_units=by_units)
        searcher = PieceSearch(log, finder, query, packed)
        hits = []
        for piece in cut(0, end, log.file_size, step):
            result = searcher.search(piece)
            assert not result.damaged
            hits += result.hits
    assert hits == [m.commitlog_offset for m in records(root) if holds(m, word)]


@pytest.mark.slow
@golden_samples.A_FEW
def test_units_lead_to_the_compressed_bodies_of_golden_stores(name):
    """As magic codes do; the stores are small, so a search would not ask the units."""
    root = golden.store(name)
    hits = {}
    with StoreView.open(root) as view:
        log, start, end = (
            StoreFiles(root, view.config).log,
            view.log_min_offset(),
            view.log_max_offset(),
        )
        for by_units in (True, False):
            finder = RecordFinder(log, end, view.unit, (4 << 20) + (64 << 10))
            packed = PackedRecords(view, log, finder, end, by_units=by_units)
            query = Query(SearchBytes((b"alpha",), True), lambda m: holds(m, b"alpha"), None, None)
            searcher = PieceSearch(log, finder, query, packed)
            pieces = cut(start, end, log.file_size, 10_000)
            hits[by_units] = [hit for piece in pieces for hit in searcher.search(piece).hits]
    found = [m.commitlog_offset for m in records(root) if holds(m, b"alpha")]
    assert hits == {True: found, False: found}
    assert found or "alpha" not in str(golden.manifest(name)["messages"])


@pytest.mark.slow
def test_processes_give_the_same_in_the_same_order(tmp_path):
    """64 MiB are worth a fork; most of the log is bodies of zeros, which cost little."""
    root = tmp_path / "s"
    assert run("store", "init", root).code == 0
    lines = b"".join(b"word %d" % i + b"\0" * 4_000_000 + b"\n" for i in range(18))
    assert run("produce", "t", "-S", root, "-Q", 0, stdin=lines).code == 0
    for jobs in (1, 2, 5):
        rows = search(root, "word 1", "--jobs", jobs)
        assert [row["queue_offset"] for row in rows] == [1, *range(10, 18)], jobs
        count = ("message", "search", "word", "--count-only", "--jobs", jobs)
        counted = run(*count, "-S", root, "-o", "json").json()
        assert (counted["hits"], counted["damaged"]) == (18, 0), jobs


@pytest.mark.feature(33)
def test_a_record_inside_a_body_is_not_found_but_its_bearer_is(tmp_path):
    made = HandMade()
    inner = encode_record(
        topic="T",
        queue_id=0,
        body=b"needle",
        properties=b"",
        queue_offset=0,
        physical_offset=made.log_end + 88,
        store_timestamp=made.timestamp,
        born_timestamp=1,
        born_host=HOST,
        store_host=HOST,
    )
    outer = made.put("T", 0, inner)
    assert places(made.write(tmp_path / "s"), "needle") == [outer.commitlog_offset]


def test_a_hit_across_two_records_is_none(tmp_path):
    made = HandMade()
    made.put("T", 0, b"x", properties={"a": "nee"})
    made.put("T", 0, b"dle")
    assert places(made.write(tmp_path / "s"), "needle") == []


def test_a_damaged_record_is_counted_and_not_shown(tmp_path):
    made = HandMade()
    made.put("T", 0, b"word 1")
    damaged = made.put("T", 0, b"word 2")
    packed = made.put("T", 0, zlib.compress(b"." * 5000)[:-9] + b"#", sys_flag=ZLIB)
    made.put("T", 0, b"word 3")
    made.log[damaged.commitlog_offset + 93] ^= 1
    root = made.write(tmp_path / "s")
    result = run("message", "search", "word", "-S", root, "-o", "jsonl")
    assert [json.loads(line)["body"] for line in result.lines] == ["word 1", "word 3"]
    assert result.code == 8
    assert "2 damaged records may be hits, too" in result.err
    count = run("message", "search", "word", "-S", root, "-o", "json", "--count-only").json()
    assert (count["hits"], count["damaged"]) == (2, 2)
    assert packed.commitlog_offset > damaged.commitlog_offset


def test_around_shows_the_neighbours_once(store):
    bodies = [b"hit" if i in {2, 3, 9} else b"%d" % i for i in range(12)]
    assert run("produce", "t", "-Q", 1, stdin=b"\n".join(bodies)).code == 0
    result = run("message", "search", "hit", "--around", 2, "-o", "jsonl")
    rows = [json.loads(line) for line in result.lines]
    shown = [(row["queue_offset"], row["hit"]) for row in rows]
    assert shown == [
        *((0, False), (1, False), (2, True), (3, True), (4, False), (5, False)),
        *((7, False), (8, False), (9, True), (10, False), (11, False)),
    ]


def test_a_limit_counts_hits_where_their_neighbours_are_shown(store):
    bodies = [b"hit" if i in {3, 9, 10} else b"%d" % i for i in range(14)]
    assert run("produce", "t", "-Q", 1, stdin=b"\n".join(bodies)).code == 0
    token: list[str] = []
    shown = []
    for _ in range(4):
        result = run(
            *("message", "search", "hit", "--around", 2, "--limit", 1, "-o", "jsonl", *token)
        )
        shown.append([json.loads(line)["queue_offset"] for line in result.lines])
        again = re.search(r"stopped at the limit; to continue: --resume (\S+)", result.err)
        if again is None:
            break
        token = ["--resume", again[1]]
    assert shown == [[1, 2, 3, 4, 5], [7, 8, 9, 10, 11], [8, 9, 10, 11, 12], []]


def test_a_limit_with_neighbours_counts_hits_of_which_a_row_is_left(store):
    bodies = [b"hit" if i in {3, 9} else b"%d" % i for i in range(12)]
    assert run("produce", "t", "-Q", 1, stdin=b"\n".join(bodies)).code == 0
    search = ("message", "search", "hit", "--around", 2, "--limit", 1, "-o", "jsonl")
    result = run(*search, "--where", "queue_offset > 8")
    assert [json.loads(line)["queue_offset"] for line in result.lines] == [9, 10, 11]
    result = run(*search, "--sort", "-queue_offset")
    assert [json.loads(line)["queue_offset"] for line in result.lines] == [11]


def test_a_limit_of_nothing_goes_back_to_no_earlier_place(store):
    run("produce", "t", stdin=b"word 1\n")
    first = run("message", "search", "word", "--count-only", "-o", "json").json()
    run("produce", "t", stdin=b"word 2\n")
    result = run("message", "search", "word", "--limit", 0, "--resume", first["resume"])
    assert f"--resume {first['resume']}" in result.err


def test_a_stopped_search_goes_on_where_it_stopped(mixed):
    root, messages = mixed
    number = {message.commitlog_offset: i for i, message in enumerate(messages)}
    token: list[str] = []
    seen = []
    for _ in range(20):
        result = run("message", "search", "word", "-S", root, "-o", "jsonl", "--limit", 3, *token)
        assert result.code == 0, result.err
        seen += [number[json.loads(line)["commitlog_offset"]] for line in result.lines]
        again = re.search(r"--resume (\S+)", result.err)
        if again is None:
            break
        token = ["--resume", again[1]]
    assert seen == [0, 1, 2, 3, 6, 7, 9, 11]


def test_what_is_stored_later_is_found_with_the_last_token(store):
    run("produce", "t", stdin=b"word 1\n")
    first = run("message", "search", "word", "--count-only", "-o", "json").json()
    run("produce", "t", stdin=b"word 2\n")
    later = run("message", "search", "word", "--resume", first["resume"], "-o", "jsonl")
    assert [json.loads(line)["body"] for line in later.lines] == ["word 2"]


@pytest.mark.parametrize(
    ("times", "later"),
    [
        (["--from", "-1h"], ["word 4"]),
        (["--from", "-1h", "--to", "+1h"], []),
        (["--to", "+1h"], []),
    ],
)
def test_a_search_goes_on_with_the_times_of_its_first_call(store, monkeypatch, times, later):
    now = time.time_ns()
    calls_at(monkeypatch, now)
    run("produce", "t", stdin=b"word 1\nword 2\nword 3\n")
    search = ("message", "search", "word", *times, "--limit", 1, "-v", "-o", "jsonl")
    token: list[str] = []
    seen = []
    for _ in range(6):
        result = run(*search, *token)
        assert result.code == 0, result.err
        seen += [json.loads(line)["body"] for line in result.lines]
        again = re.search(r"--resume (\S+)", result.err)
        assert again is not None
        token = ["--resume", again[1]]
        now += 2 * HOUR_NS
        calls_at(monkeypatch, now)
        if len(seen) == 3:
            run("produce", "t", stdin=b"word 4\n")
    assert seen[:3] == ["word 1", "word 2", "word 3"]
    assert seen[3:4] == later
    other = run("message", "search", "word", "--from", "-2h", *token)
    assert (other.code, "belongs to another search" in other.err) == (2, True)


def test_a_token_without_times_is_refused_for_a_search_with_times(store):
    run("produce", "t", stdin=b"word 1\n")
    search = ("message", "search", "word", "--from", "-1h", "--count-only", "-o", "json")
    token = run(*search).json()["resume"]
    for old in (token.split(".")[0], f"{token}1", f"{token}."):
        result = run(*search, "--resume", old)
        assert (result.code, result.err.count("\n"), result.raw) == (2, 1, b""), result.err
    assert "has no times" in run(*search, "--resume", token.split(".")[0]).err


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        ([], 2, "give a PATTERN, or a filter"),
        ([""], 2, "PATTERN is empty"),
        (["x", "-t", "nowhere"], 3, "topic nowhere does not exist"),
        (["x", "-t", "a/b"], 2, "topic 'a/b' has characters other than"),
        (["x", "--in", "head"], 2, "--in: 'head' is not one of body, tags, keys, properties"),
        (["x", "--resume", "nonsense"], 2, "is not a token of 'message search'"),
        (["x", "--resume", "0-00000000"], 2, "belongs to another search"),
        (["--regex", "("], 2, "--regex: '(' is not a regular expression"),
        (["x", "--jobs", "0"], 2, "is not in the range"),
        (["x", "--around", "-1"], 2, "is not in the range"),
    ],
)
def test_mistakes_are_one_sentence(store, args, code, sentence):
    result = run("message", "search", *args)
    assert (result.code, result.err.count("\n"), result.raw) == (code, 1, b""), result.err
    assert sentence in result.err


def test_a_token_of_a_longer_log_is_refused(store, mixed):
    root, _ = mixed
    token = run("message", "search", "word", "-S", root, "--count-only", "-o", "json").json()[
        "resume"
    ]
    result = run("message", "search", "word", "--resume", token)
    assert result.code == 2
    assert "another store" in result.err


def test_escapes_of_a_body_never_reach_a_terminal(store):
    run("produce", "t", stdin=b"word \x1b[31mred\n")
    result = run("message", "search", "word", "-o", "table")
    assert b"\x1b" not in result.raw
    assert "\\x1b[31mred" in result.out


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("order", b"order"),
        ("^order$", b"order"),
        ("ord.er", b"ord"),
        ("orders?x", b"order"),
        ("orders*", b"order"),
        ("orders+x", b"orders"),
        ("orders{0,3}", b"order"),
        (r"a\.b\.c", b"a.b.c"),
        (r"sku-\d+", b"sku-"),
        ("[abc]defg", b"defg"),
        ("[]abc]defg", b"defg"),
        ("(abcd)?efg", b"efg"),
        (r"(a[)]\)b)cde", b"cde"),
        ("abc|def", None),
        ("(?i)abc", None),
        (r"abc\x41", None),
        ("ab", None),
        ("abcd?", b"abc"),
        (r"\babc\b", b"abc"),
    ],
)
def test_every_match_holds_the_literal(pattern, literal):
    assert literal_of(pattern) == literal
