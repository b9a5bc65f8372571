"""Any log, any word, pieces of any size: a search gives what reading each message gives."""

import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rmqctl.admin.messages.search.byte_search import SearchBytes
from rmqctl.admin.messages.search.packed import PackedRecords
from rmqctl.admin.messages.search.pieces import PieceSearch, cut
from rmqctl.admin.messages.search.query import Query
from rmqctl.admin.messages.search.texts import texts_in
from storage.files.read_files import StoreFiles
from storage.format.properties import parse_properties
from storage.log.record_finder import RecordFinder
from storage.readonly import StoreView
from tests.support.examples import examples
from tests.support.hand_made import TINY, HandMade

ZLIB = 0x301
# Few different bytes, so that words are found, across fields too; and those of a magic code.
LETTERS = b"ab\xda\xa3 \xa7\x00"
words = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=5).map(bytes)
bodies = st.lists(st.sampled_from(LETTERS), max_size=300).map(bytes)
texts = st.text("ab ", min_size=1, max_size=8)
messages = st.lists(
    st.tuples(
        bodies,
        st.sampled_from(["a", "ab", "T"]),
        st.dictionaries(st.text("ab", min_size=1, max_size=3), texts, max_size=2),
        st.sampled_from(["plain", "packed", "without a unit", "prepared"]),
    ),
    min_size=1,
    max_size=14,
)


def put(made: HandMade, message: tuple[bytes, str, dict[str, str], str]) -> tuple[int, bytes]:
    """Store a message; gives its offset and the body that readers get."""
    body, topic, properties, kind = message
    packed = kind == "packed" and bool(body)
    stored = made.put(
        topic,
        len(body) % 2,
        zlib.compress(body) if packed else body,
        properties=properties,
        sys_flag=ZLIB if packed else 4 if kind == "prepared" else 0,
        unit=kind != "without a unit",
    )
    return stored.commitlog_offset, body


@pytest.mark.slow
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(messages, words, st.integers(1, 1100), st.booleans(), st.booleans())
def test_hits_are_those_of_a_look_at_each_message(
    tmp_path_factory: pytest.TempPathFactory,
    messages: list[Any],
    word: bytes,
    step: int,
    by_units: bool,
    in_body: bool,
) -> None:
    made = HandMade()
    expected = []
    for message in messages:
        place, body = put(made, message)
        stored = "\x02".join(f"{name}\x01{value}" for name, value in message[2].items())
        values = [value.encode() for value in parse_properties(stored.encode()).values()]
        if any(word in text for text in [*values, *([body] if in_body else [])]):
            expected.append(place)
    read = texts_in(("body", "properties") if in_body else ("properties",))
    query = Query(
        SearchBytes((word,), in_body),
        lambda message: any(word in text for text in read(message)),
        None,
        None,
    )
    with StoreView.open(made.write(tmp_path_factory.mktemp("s"))) as view:
        log, end = StoreFiles(view.root, view.config).log, view.log_max_offset()
        assert end == made.log_end
        finder = RecordFinder(log, end, view.unit, (4 << 20) + (64 << 10))
        packed = PackedRecords(view, log, finder, end, by_units=by_units)
        searcher = PieceSearch(log, finder, query, packed)
        results = [searcher.search(piece) for piece in cut(0, end, log.file_size, step)]
    assert [hit for result in results for hit in result.hits] == expected
    assert not any(result.damaged for result in results)


@pytest.mark.parametrize("length", [40, 49, 50, 51, 90])
@pytest.mark.parametrize("before", [1, 40, 48, 49])
def test_a_long_word_across_two_buffers(tmp_path: Any, length: int, before: int) -> None:
    """However many of its bytes lie before the boundary, the buffer reaches to its end."""
    made = HandMade(replace(TINY, mapped_file_size_commit_log=1 << 20))
    word = b"z" + b"y" * (length - 2) + b"x"
    made.put("T", 0, b"." * ((1 << 18) - min(before, length - 1) - 88) + word + b".")
    needle = SearchBytes((word,), in_body=True)
    query = Query(needle, lambda message: word in message.body, None, None)
    with StoreView.open(made.write(tmp_path)) as view:
        log, end = StoreFiles(view.root, view.config).log, view.log_max_offset()
        finder = RecordFinder(log, end, view.unit, (4 << 20) + (64 << 10))
        packed = PackedRecords(view, log, finder, end, by_units=True)
        searcher = PieceSearch(log, finder, query, packed)
        hits = [
            hit
            for piece in cut(0, end, log.file_size, 1 << 19)
            for hit in searcher.search(piece).hits
        ]
    assert hits == [0]


@given(
    st.lists(st.sampled_from(b"abc"), min_size=1, max_size=6).map(bytes),
    st.lists(st.sampled_from(b"abc"), max_size=60).map(bytes),
    st.integers(0, 10),
    st.integers(0, 10),
)
@pytest.mark.slow
def test_each_way_to_look_for_a_word_finds_its_first_place(
    word: bytes, rest: bytes, start: int, less: int
) -> None:
    """Also where its rare byte stands in it more than once, or without the rest of it."""
    buffer = bytearray(rest + word + rest)
    end = max(start, len(buffer) - less)
    needle = SearchBytes((word,), in_body=True)
    by_byte = needle.finder(b"." * (1 << 12))
    by_expression = needle.finder(word * 1000)
    assert by_byte.__qualname__ != by_expression.__qualname__
    assert by_byte(buffer, start, end) == buffer.find(word, start, end)
    assert by_expression(buffer, start, end) == buffer.find(word, start, end)


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("first", "following", "start", "end", "may"),
    [
        (1000, 2000, None, None, True),
        (1000, 2000, 2000 + HOUR_MS, None, True),
        (1000, 2000, 2001 + HOUR_MS, None, False),
        (1000, None, 1 << 50, None, True),
        (1000 + HOUR_MS, None, None, 1001, True),
        (1000 + HOUR_MS, None, None, 1000, False),
    ],
)
def test_the_clock_of_a_broker_may_have_gone_back_by_an_hour(
    first: int, following: int | None, start: int | None, end: int | None, may: bool
) -> None:
    """So a log file is looked into whose times lie an hour beside those that are wanted."""
    query = Query(None, lambda _: True, start, end)
    assert query.may_be_in_file(first, following) is may


@pytest.mark.parametrize("by_units", [True, False])
@pytest.mark.parametrize("delta", range(-8, 3))
def test_words_where_one_buffer_ends_and_the_next_begins(
    tmp_path: Any, delta: int, by_units: bool
) -> None:
    """Of the search's 256 KiB; a compressed record lies across the boundary, too."""
    made = HandMade(replace(TINY, mapped_file_size_commit_log=1 << 20))
    boundary = 1 << 18
    made.put("T", 0, b"." * (boundary - 20_000))
    place = boundary + delta - made.log_end - 88
    made.put("T", 0, b"." * place + b"needle" + b"." * 100)
    made.put("T", 0, b"." * (2 * boundary - made.log_end - 135 + 4 * delta))
    made.put("T", 0, zlib.compress(b"needle"), sys_flag=ZLIB)
    made.put("T", 0, b"." * 1000)
    root = made.write(tmp_path)
    needle = SearchBytes((b"needle",), True)
    query = Query(needle, lambda message: b"needle" in message.body, None, None)
    with StoreView.open(root) as view:
        log, end = StoreFiles(view.root, view.config).log, view.log_max_offset()
        finder = RecordFinder(log, end, view.unit, (4 << 20) + (64 << 10))
        packed = PackedRecords(view, log, finder, end, by_units=by_units)
        searcher = PieceSearch(log, finder, query, packed)
        (piece,) = cut(0, end, log.file_size, 1 << 20)
        hits = searcher.search(piece).hits
    assert hits == [made.messages[1].commitlog_offset, made.messages[3].commitlog_offset]
    assert abs(made.messages[3].commitlog_offset - 2 * boundary) < 150
