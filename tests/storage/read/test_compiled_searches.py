"""Keys and times are found by compiled code as by the pure forms, whatever the files say."""

from __future__ import annotations

from struct import Struct

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.index_file import INDEX_ENTRY, INDEX_HEADER
from storage.format.java_hash import key_hash
from storage.format.layout import BLANK_MAGIC, HEADS, MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2
from storage.format.names import file_name
from storage.index.reader import _search as pure_search
from storage.log.record_reader import RecordReader
from storage.read.by_time import halve
from storage.readonly import FOREVER
from tests.support.compiled import compiled, needs_compiled
from tests.support.examples import examples

SLOTS, ENTRIES = 3, 12
KEYS = ("a", "b", "key-7", "", "Zahl \u00fc", "\ud800")
HASHES = [key_hash("T", key) for key in KEYS]
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.one_of(st.integers(-1, 20_000), LONGS)
NUMBERS = st.integers(-1, ENTRIES + 2)


@st.composite
def index_files(draw: st.DrawFn) -> bytes:
    """A file whose fields all fit into it or not, with chains that end, break or run in circles."""
    header = INDEX_HEADER.pack(
        *(draw(TIMES) for _ in range(2)), draw(LONGS), draw(LONGS), draw(NUMBERS), draw(NUMBERS)
    )
    slots = Struct(f">{SLOTS}i").pack(*(draw(NUMBERS) for _ in range(SLOTS)))
    entries = [
        INDEX_ENTRY.pack(
            draw(st.sampled_from(HASHES)),
            draw(st.one_of(st.integers(0, 100), LONGS)),
            draw(st.sampled_from((0, 1, 5, -1, (1 << 31) - 1))),
            draw(st.one_of(st.just(max(0, number - 1)), NUMBERS)),
        )
        for number in range(ENTRIES)
    ]
    whole = b"".join((header, slots, *entries))
    return whole[: draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))]


@pytest.mark.slow
@needs_compiled
@settings(max_examples=examples(300, short=25), deadline=None)
@given(
    files=st.lists(index_files(), max_size=3).map(tuple),
    key=st.sampled_from(KEYS),
    times=st.tuples(st.one_of(st.just(0), TIMES), st.one_of(st.just(FOREVER), TIMES)),
    below=st.none() | st.integers(-1, 100),
    follow_slots=st.booleans(),
    most=st.integers(-1, 5) | st.just(FOREVER),
    hits=st.lists(st.integers(0, 9), max_size=2),
)
def test_keys_are_found_alike(
    files: tuple[bytes, ...],
    key: str,
    times: tuple[int, int],
    below: int | None,
    follow_slots: bool,
    most: int,
    hits: list[int],
) -> None:
    asked = (files, SLOTS, ENTRIES, "T", key, *times, below, follow_slots, most)
    found, expected = list(hits), list(hits)
    goes_on = compiled.search_index(*asked, found)
    assert (goes_on is None) == (key == "\ud800")
    if goes_on is not None:
        assert goes_on == pure_search(*asked, expected)
        assert found == expected


@needs_compiled
@given(st.text(max_size=20), st.text(max_size=80))
def test_a_key_has_the_same_hash(topic: str, key: str) -> None:
    number = 1
    slot = Struct(">i").pack(number)
    header = INDEX_HEADER.pack(1000, 1000, 0, 0, 1, 2)
    entry = INDEX_ENTRY.pack(key_hash(topic, key), 77, 0, 0)
    file = b"".join((header, slot, bytes(20), entry))
    hits: list[int] = []
    told = compiled.search_index((file,), 1, 2, topic, key, 0, FOREVER, None, False, 9, hits)
    assert hits == [77] or (told is None and has_half_pair(topic + key))


def has_half_pair(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


@needs_compiled
@pytest.mark.parametrize("times", [(0, 1 << 63), (-(1 << 63) - 1, 5)])
def test_times_that_no_word_holds_are_refused(times: tuple[int, int]) -> None:
    with pytest.raises(OverflowError):
        compiled.search_index((), SLOTS, ENTRIES, "T", "a", *times, None, True, 9, [])


@needs_compiled
def test_what_is_no_index_is_refused() -> None:
    with pytest.raises(ValueError, match="slots"):
        compiled.search_index((), 0, ENTRIES, "T", "a", 0, 1, None, True, 9, [])
    with pytest.raises(TypeError):
        compiled.search_index((), 1, ENTRIES, "T", "a", 0, 1, None, True, 9)
    with pytest.raises(TypeError):
        compiled.search_index([], 1, ENTRIES, "T", "a", 0, 1, None, True, 9, [])


RECORD, LOG_FILE, RECORDS = 128, 512, 12
_MAGICS = (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2, BLANK_MAGIC)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Records that ascend in time, mostly."""
    time, records = 100, []
    for number in range(RECORDS):
        time = draw(st.sampled_from((time, time + 1, time + 5, time - 3, -1)))
        sys_flag = draw(st.sampled_from((0, 0, 0x10, 0x20, 0x30)))
        size = draw(st.sampled_from((RECORD, RECORD, RECORD, RECORD, 90, -1)))
        hosts = (bytes(20 if sys_flag & 0x10 else 8), bytes(20 if sys_flag & 0x20 else 8))
        place = number * RECORD
        magic = draw(st.sampled_from(_MAGICS)) if draw(st.integers(0, 5)) == 0 else _MAGICS[0]
        fields = (size, magic, 0, 0, 0, number, place, sys_flag, 0, hosts[0], time, hosts[1], 0, 0)
        records.append(HEADS[sys_flag >> 4].pack(*fields, 0).ljust(RECORD, b"\0"))
    return b"".join(records)


UNITS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, RECORDS - 1).map(RECORD.__mul__), st.integers(0, 2000), LONGS),
        st.sampled_from((RECORD, RECORD, RECORD, 91, 600, 0, -5, (1 << 31) - 1)),
    ),
    max_size=12,
)
WHOLE = st.just([(number * RECORD, RECORD) for number in range(RECORDS)])


@pytest.mark.slow
@needs_compiled
@settings(
    max_examples=examples(200, short=20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    log=logs(),
    missing=st.none() | st.integers(0, 2),
    units=WHOLE | UNITS,
    ends=st.tuples(st.integers(0, 12), st.integers(-1, 11)),
    log_min=st.sampled_from((0, 0, LOG_FILE)),
    time=st.integers(0, 200),
)
def test_times_are_found_alike(
    log: bytes,
    missing: int | None,
    units: list[tuple[int, int]],
    ends: tuple[int, int],
    log_min: int,
    time: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("log")
    for number in range(len(log) // LOG_FILE):
        if number != missing:
            first = number * LOG_FILE
            (folder / file_name(first)).write_bytes(log[first : first + LOG_FILE])
    row = ReadOnlyFiles(MapBudget(), str(folder), LOG_FILE)
    view = memoryview(b"".join(CQ_STORE_UNIT.pack(*unit, 0) for unit in units))
    low, high = ends[0], min(ends[1], len(units) - 1)
    time_of = RecordReader(row).store_timestamp
    expected = halve(lambda number: units[number], time_of, low, high, log_min, time)
    assert compiled.halve(view, low, high, log_min, time, LOG_FILE, row.at) == expected


@needs_compiled
@pytest.mark.parametrize("ends", [(0, 1), (-1, 0)])
def test_units_that_are_not_there_are_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="units"):
        compiled.halve(bytes(39), *ends, 0, 5, LOG_FILE, lambda _: None)


@needs_compiled
def test_errors_of_opening_a_file_are_told() -> None:
    def fails(_: int) -> None:
        raise PermissionError(13, "no")

    with pytest.raises(PermissionError):
        compiled.halve(bytes(40), 0, 1, 0, 5, LOG_FILE, fails)
    with pytest.raises(AttributeError):
        compiled.halve(bytes(40), 0, 1, 0, 5, LOG_FILE, lambda _: 7)
