import pytest
from hypothesis import given, strategies as st

from rmqctl.parse.durations import (
    format_duration,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("15m", 900_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1500),
        ("PT15M", 900_000),
        ("P1DT2H", 93_600_000),
        ("PT0.5S", 500),
        ("pt15m", 900_000),
    ],
)
def test_durations(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "10", "P", "PT", "ten", "10 s", "-5s", "5x", "P1Y"])
def test_malformed_durations_are_refused(text):
    with pytest.raises(ValueError, match="duration|unit"):
        parse_duration(text)


def test_a_number_without_unit_is_told_to_have_one():
    with pytest.raises(ValueError, match="write 10s or 10ms"):
        parse_duration("10")


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1s"),
        (12_340, "12.3s"),
        (60_000, "1m"),
        (303_000, "5m3s"),
        (7_500_000, "2h5m"),
        (86_400_000, "1d"),
        (273_600_000, "3d4h"),
        (-1000, "-1s"),
    ],
)
def test_durations_for_people(milliseconds, expected):
    assert format_duration(milliseconds) == expected


@given(st.integers(0, 10**12))
def test_a_printed_duration_is_read_back_within_its_precision(milliseconds):
    assert abs(parse_duration(format_duration(milliseconds)) - milliseconds) <= max(
        milliseconds * 0.04, 60
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1000", 1000), ("64K", 65_536), ("10M", 10 << 20), ("1G", 1 << 30), ("1.5k", 1536)]
    + [("64KiB", 65_536), ("3B", 3), ("2TB", 2 << 40)],
)
def test_sizes(text, expected):
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "K", "1X", "-1", "1 0", "0x10"])
def test_malformed_sizes_are_refused(text):
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "0"), (999, "999"), (1024, "1K"), (1536, "1.5K"), (1 << 20, "1M"), (1_023_000, "999K")]
    + [(1 << 40, "1T"), (-1024, "-1K")],
)
def test_sizes_for_people(size, expected):
    assert format_size(size) == expected


def test_rates():
    assert parse_rate("100") == 100
    assert parse_rate("100/s") == 100
    assert parse_rate("30/m") == 0.5
    for text in ("0", "fast", "10/d", "-1/s"):
        with pytest.raises(ValueError, match="not a rate"):
            parse_rate(text)
