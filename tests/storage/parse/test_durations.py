import pytest
from hypothesis import given, strategies as st

from storage.parse.durations import (
    format_duration,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
    parse_span,
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
        (" 2w ", 1_209_600_000),
        ("P2W", 1_209_600_000),
        ("P1W2DT3H4M5.5S", 788_645_500),
        ("3d4h5m6s7ms", 273_906_007),
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


@pytest.mark.parametrize(
    ("names", "milliseconds"),
    [
        ("us usec microsecond microseconds", 0.001),
        ("ms msec msecs millisecond milliseconds", 1),
        ("s sec secs second seconds S", 1000),
        ("m min mins minute minutes", 60_000),
        ("h hr hrs hour hours", 3_600_000),
        ("d day days", 86_400_000),
        ("w week weeks Weeks", 604_800_000),
        ("month months", 2_629_800_000),
        ("y yr year years", 31_557_600_000),
    ],
)
def test_spans_take_the_words_of_systemd(names, milliseconds):
    for name in names.split():
        assert parse_span(f"4000{name}") == 4000 * milliseconds
        assert parse_span(f" 4000 {name} ") == 4000 * milliseconds


def test_spans_have_several_parts_or_are_durations():
    assert parse_span("1h 30min") == parse_span("1.5 h") == parse_span("PT90M") == 5_400_000
    assert parse_span("2 days 1 hour 1s") == 176_401_000
    for text in ("3 M", "1 h 2 fortnights"):
        with pytest.raises(ValueError, match="is not a unit of time"):
            parse_span(text)
    for text in ("1 h x", "h", "10"):
        with pytest.raises(ValueError, match="not a duration|no unit"):
            parse_span(text)


def test_what_does_not_fit_into_63_bits_is_too_large():
    assert parse_size("8388607T") == 8_388_607 << 40
    assert parse_duration("9007199254740s") == 9_007_199_254_740_000
    for call, text in (
        (parse_size, "8388608T"),
        (parse_duration, "9223372036854776s"),
        (parse_duration, "PT9223372036854776S"),
        (parse_span, "9223372036854776 s"),
        (parse_rate, "9223372036854775808"),
    ):
        with pytest.raises(ValueError, match="is too large"):
            call(text)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1000, "1K"),
        (102_297, "99.9K"),
        (102_349, "100K"),
        (1_023_487, "999K"),
        (1_023_488, "1M"),
        (5 << 50, "5P"),
        (7 << 60, "7E"),
        (2000 << 60, "2000E"),
    ],
)
def test_sizes_have_at_most_three_digits(size, expected):
    assert format_size(size) == expected


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (59_949, "59.9s"),
        (60_999, "1m"),
        (61_000, "1m1s"),
        (3_599_999, "59m59s"),
        (3_600_000, "1h"),
        (3_661_000, "1h1m"),
        (86_399_999, "23h59m"),
        (90_000_000, "1d1h"),
        (10_000, "10s"),
        (-1, "-1ms"),
    ],
)
def test_durations_have_two_units(milliseconds, expected):
    assert format_duration(milliseconds) == expected


def test_rates():
    assert parse_rate(" 1.5/s ") == 1.5
    assert parse_rate("18/h") == 0.005
    assert parse_rate("100") == 100
    assert parse_rate("100/s") == 100
    assert parse_rate("30/m") == 0.5
    for text in ("0", "fast", "10/d", "-1/s"):
        with pytest.raises(ValueError, match="not a rate"):
            parse_rate(text)
