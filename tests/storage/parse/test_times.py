import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from storage.parse.time_forms import TIME_FORMS
from storage.parse.times import (
    check_order,
    day_bounds,
    format_time,
    parse_epoch,
    parse_time,
    parse_zone,
)

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("1767225601", NOW + 1000),
        ("1767225600123", NOW + 123),
        ("2026-01-01", NOW),
        ("2026-01-01T10:00", NOW + 36_000_000),
        ("2026-01-01 10:00:00", NOW + 36_000_000),
        ("2026-01-01T10:00:00Z", NOW + 36_000_000),
        ("2026-01-01t10:00:00z", NOW + 36_000_000),
        ("2026-01-01T10:00:00.5+01:00", NOW + 32_400_500),
        ("2026-01-01T10:00:00,123", NOW + 36_000_123),
        ("2026-01-01T10:00:00.123999999Z", NOW + 36_000_123),
        ("2026-01-01#10:00:00:007", NOW + 36_000_007),
        ("-15m", NOW - 900_000),
        ("+15m", NOW + 900_000),
        ("-1h30m", NOW - 5_400_000),
        ("PT15M", NOW - 900_000),
        ("-PT15M", NOW - 900_000),
        ("P1D", NOW - 86_400_000),
        (" now ", NOW),
        ("0", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("631152000", 631_152_000_000),
        ("1767225600123456", NOW + 123),
        ("1767225600123456789", NOW + 123),
        ("20260101100000", NOW + 36_000_000),
    ],
)
def test_every_form_of_a_time_is_read(text, expected):
    assert parse_time(text, NOW, UTC) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "123",
        "20261301",
        "2026-13-01",
        "2026-01-01T25:00",
        "-15",
        "2026-01-01T",
        "--1h",
    ]
    + ["2026-1-1", "\u0661" * 10, "2026-01-01#10:00:00"],
)
def test_malformed_times_name_the_text_and_the_right_forms(text):
    with pytest.raises(ValueError, match="time|epoch"):
        parse_time(text, NOW, UTC)


def test_a_time_without_zone_is_read_in_the_zone_asked_for():
    assert parse_time("2026-07-01T12:00", NOW, BERLIN) == parse_time("2026-07-01T10:00Z", NOW)


def test_a_time_with_a_zone_ignores_the_zone_asked_for():
    assert parse_time("2026-01-01T00:00:00Z", NOW, BERLIN) == NOW


def test_formats_for_people_and_for_lines():
    assert format_time(NOW + 7, UTC) == "2026-01-01 00:00:00.007"
    assert format_time(NOW + 7, BERLIN, iso=True) == "2026-01-01T01:00:00.007+01:00"


def test_a_timestamp_outside_of_the_calendar_is_printed_as_a_number():
    assert format_time(10**17, UTC) == str(10**17)


@pytest.mark.parametrize(
    ("text", "would_be"),
    [
        ("123", "1970-01-01T00:02:03.000+00:00 in seconds"),
        ("17672256000", "2530-01-05T00:00:00.000+00:00 in seconds or 1970-07-24"),
        ("176722560000000", "in milliseconds or 1975-08-08"),
        ("1" * 23, "after the year 9999 in nanoseconds"),
        ("1985-01-01", "1985-01-01T00:00:00.000"),
        ("2999-01-01T00:00Z", "2999-01-01T00:00:00.000"),
        ("0001-01-01", "0001-01-01"),
        ("-99999d", "1752"),
        ("+999999999d", "after the year 9999"),
        ("-9999999999d", "before the year 1"),
    ],
)
def test_a_time_before_1990_or_after_2200_is_refused_with_what_it_would_be(text, would_be):
    with pytest.raises(ValueError, match="between 1990 and 2200") as refused:
        parse_time(text, NOW, UTC)
    assert would_be in str(refused.value)


@given(st.integers(631_152_000, 7_289_654_399), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_a_number_means_the_same_in_every_unit(seconds, in_second):
    assert parse_time(str(seconds * in_second), NOW) == seconds * 1000


@given(st.integers(631_152_000_000, 7_289_654_399_999))
def test_what_is_printed_is_read_back(timestamp):
    assert parse_time(format_time(timestamp, UTC, iso=True), 0) == timestamp


@pytest.mark.parametrize(
    ("text", "zone"),
    [("UTC", UTC), ("+08:00", timezone(timedelta(hours=8))), ("-0330", None), ("local", None)],
)
def test_zones(text, zone):
    parsed = parse_zone(text)
    if text == "-0330":
        assert parsed is not None
        assert parsed.utcoffset(datetime(2026, 1, 1)) == timedelta(hours=-3.5)
    else:
        assert parsed == zone


@pytest.mark.parametrize("text", ["Mars/Olympus", "", "../etc/passwd", "08:00"])
def test_unknown_zones_are_refused(text):
    with pytest.raises(ValueError, match="not a time zone"):
        parse_zone(text)


@pytest.mark.parametrize("in_second", [1, 1000, 10**6, 10**9])
def test_the_span_of_times_ends_with_the_year_2200(in_second):
    first, end = 631_152_000, 7_289_654_400
    assert parse_time(str(first * in_second), NOW) == first * 1000
    assert parse_epoch(end * in_second - 1) // 1000 == end - 1
    for number in (first * in_second - 1, end * in_second):
        with pytest.raises(ValueError, match="a time must lie between 1990 and 2200"):
            parse_epoch(number)


def test_a_written_time_has_the_same_span():
    assert parse_time("1990-01-01T00:00Z", NOW) == 631_152_000_000
    assert parse_time("2200-12-31T23:59:59.999Z", NOW) == 7_289_654_399_999
    for text in ("1989-12-31T23:59:59.999Z", "2201-01-01T00:00Z"):
        with pytest.raises(ValueError, match="a time must lie between 1990 and 2200"):
            parse_time(text, NOW)


def test_a_range_may_be_one_instant():
    for first, last in ((5, 5), (5, 6), (None, 5), (5, None), (None, None)):
        check_order(first, last, ("--from", "--to"))
    with pytest.raises(ValueError, match="the range ends before it begins"):
        check_order(6, 5, ("--from", "--to"))


def test_digits_in_the_form_of_a_date_are_read_in_the_zone_asked_for():
    assert parse_time("20260101100000", NOW, BERLIN) == NOW + 32_400_000
    assert parse_time("20260101100000", NOW, UTC) == NOW + 36_000_000


@pytest.mark.parametrize("count", [41, 5000])
def test_digits_without_an_end_are_no_time(count):
    with pytest.raises(ValueError, match="is not a time") as raised:
        parse_time("1" * count, NOW)
    assert len(str(raised.value)) < 200


EXAMPLES = [example for form in TIME_FORMS for example in (form.example, *form.also)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_table_of_forms_is_a_time(example):
    parse_time(example, NOW, BERLIN)


def test_what_a_shell_offers_is_a_time():
    offered = [text for form in TIME_FORMS for text in form.completions]
    assert {"-1h", "today", "yesterday 15:00", "09:30"} <= {*offered}
    for text in offered:
        parse_time(text, NOW, BERLIN)


DAYS = [
    ("Europe/Berlin", "2025-03-30", "2025-03-29T23:00Z", "2025-03-30T22:00Z"),
    ("Europe/Berlin", "2025-10-26", "2025-10-25T22:00Z", "2025-10-26T23:00Z"),
    ("Europe/Berlin", "2025-10-27", "2025-10-26T23:00Z", "2025-10-27T23:00Z"),
    ("America/Havana", "2025-11-02", "2025-11-02T04:00Z", "2025-11-03T05:00Z"),
    ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00Z", "2018-11-05T02:00Z"),
    ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00Z", "2011-12-30T10:00Z"),
]
"""Zone, day, and where it begins and ends: midnight occurs twice in Havana, not in Sao Paulo."""


@pytest.mark.parametrize("local", [False, True], ids=["named", "local"])
@pytest.mark.parametrize(("name", "day", "begin", "end"), DAYS)
def test_a_day_begins_at_midnight_of_its_own_offset(monkeypatch, name, day, begin, end, local):
    zone = ZoneInfo(name)
    first, last = (int(datetime.fromisoformat(at).timestamp() * 1000) for at in (begin, end))
    with monkeypatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        found = {day_bounds(at, None if local else zone) for at in range(first, last, 1_799_999)}
    time.tzset()
    assert found == {(first, last)}
    assert format_time(first, zone)[:10] == day


def test_the_day_of_a_damaged_time_is_the_last_one():
    day = day_bounds(1 << 62, UTC)
    assert day[1] - day[0] == 86_400_000
    assert format_time(day[0], UTC).startswith("9999-12-29")
